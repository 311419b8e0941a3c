"""A step that somebody has yet to write."""

from __future__ import annotations

from typing import Any

from burnish.errors import UnwrittenError
from burnish.nn.layer import Layer


class Unwritten(Layer):
    """What a model file does not tell: a call raises UnwrittenError with the place.

    step: where it stands and the shapes around it. Source that is made from weights
    alone has one wherever something without weights may stand; its author puts the
    layer or the operators there, `nn.ReLU()` or `ops.relu(x)`. So has a method that
    stands for an operator that nobody knows.
    """

    def __init__(self, step: str):
        self.step = step

    def forward(self, *inputs: Any) -> Any:
        shapes = ", ".join(str(getattr(x, "shape", x)) for x in inputs)
        raise UnwrittenError(
            f"{self.step}: expected a step that the file does not tell, got none "
            f"written; in the source, put it where nn.Unwritten stands (called with "
            f"{shapes})"
        )
