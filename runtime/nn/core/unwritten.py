"""Placeholder for a step that has yet to be written."""

from __future__ import annotations

from typing import Any

from burnish.errors import UnwrittenError
from burnish.nn.core.layer import Layer


class Unwritten(Layer):
    """A step that a model file does not describe: a call raises UnwrittenError.

    step: its place, which the error names, and the shapes around it. Source that is
    made from weights alone has one wherever an operator without weights may belong; its
    author replaces it by a layer or operators, `nn.ReLU()` or `ops.relu(x)`. A method
    that represents an unsupported operator has one too.
    """

    def __init__(self, step: str):
        self.step = step

    def forward(self, *inputs: Any) -> Any:
        shapes = ", ".join(str(getattr(x, "shape", x)) for x in inputs)
        raise UnwrittenError(
            f"{self.step}: expected a step that the file does not tell, got none "
            f"written; in the source, replace nn.Unwritten by it (called with "
            f"{shapes})"
        )
