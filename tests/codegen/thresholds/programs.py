"""Small programs and graphs in which a threshold decides, and their source."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from burnish.codegen.arrange import arrange
from burnish.codegen.errors import Explain, silent
from burnish.codegen.pipeline import generate
from burnish.codegen.program import Statement
from burnish.codegen.render.page import Header, render
from tests.harness.program_text import parsed

Step = str | tuple[str, int, int]
"""A function of `{x}`, or a linear layer: its name, and its sizes in and out."""


@dataclass(frozen=True)
class Threshold:
    """A number, a looser one, and the false positive that the declared one prevents.

    place: module and name, below `burnish.codegen`. happens: whether the false positive
    is there.
    """

    place: str
    looser: Any
    prevents: str
    happens: Callable[[], bool]


def chain(*blocks: list[Step], scope: str = "blocks.{}:Block", width: int = 4) -> str:
    """The text of a program whose steps run one after the other.

    scope: of each block, by its number; "" for none. width: features of the input.
    """
    weights, lines, x, count, size = [], [], "x", 0, width
    for number, steps in enumerate(blocks):
        at = scope.format(number)
        path = at.replace(":Block", "")
        for step in steps:
            count += 1
            if isinstance(step, tuple):
                name, before, size = step
                key = f"{path}.{name}.weight" if at else ""
                weights.append(f'weight w{count} "{key}": float32[{size}, {before}]')
                made = f"nn.Linear({before}, {size}, bias=False, weight=w{count})({x})"
                module = f"{at}.{name}"
            else:
                made, module = step.format(x=x), at
            comment = f"  # {module}" if at else ""
            lines.append(f"v{count}: float32[batch, {size}] = {made}{comment}")
            x = f"v{count}"
    inputs = [f"input x: float32[batch, {width}]"]
    ends = [f"return {x}", f'output "y": float32[batch, {size}]']
    return "\n".join([*weights, *inputs, *lines, *ends])


def images(*steps: str, gated: bool = False) -> str:
    """The text of a program over images: "conv", "norm", or a function of `{x}`.

    gated: what the first step gives is multiplied by the last one's result.
    """
    weights, lines, x = [], [], "x"
    for n, step in enumerate(steps):
        if step == "conv":
            weights.append(f'weight w{n} "": float32[4, 4, 1, 1]')
            made = f"nn.Conv2d(4, 4, 1, bias=False, weight=w{n})({x})"
        elif step == "norm":
            weights += [f'weight {letter}{n} "": float32[4]' for letter in "abcd"]
            held = f"weight=a{n}, bias=b{n}, running_mean=c{n}, running_var=d{n}"
            made = f"nn.BatchNorm2d(4, {held})({x})"
        else:
            made = step.format(x=x)
        lines.append(f"v{n}: float32[batch, 4, h, w] = {made}")
        x = f"v{n}"
    if gated:
        lines.append(f"y: float32[batch, 4, h, w] = (v0 * {x})")
        x = "y"
    ends = [f"return {x}", 'output "y": float32[batch, 4, h, w]']
    return "\n".join([*weights, "input x: float32[batch, 4, h, w]", *lines, *ends])


def embeddings(**rows: int) -> str:
    """The text of a program that adds what several tables have for ids."""
    weights, inputs, lines = [], [], []
    for n, (name, count) in enumerate(rows.items()):
        weights.append(f'weight w{n} "{name}.weight": float32[{count}, 8]')
        inputs.append(f"input x{n}: int64[batch, time]")
        made = f"nn.Embedding({count}, 8, weight=w{n})(x{n})"
        lines.append(f"e{n}: float32[batch, time, 8] = {made}  # {name}")
    ends = ["y: float32[batch, time, 8] = (e0 + e1)", "return y"]
    return "\n".join(
        [*weights, *inputs, *lines, *ends, 'output "y": float32[batch, time, 8]']
    )


def source(text: str) -> str:
    """The source that a program is arranged to."""
    plan = arrange(parsed(text))
    return render(plan, Header("title", ("made.",), (), {}))


def classes(*blocks: list[Step]) -> int:
    """How many classes a chain of blocks becomes, beside the model's."""
    return source(chain(*blocks)).count("\nclass ") - 1


def generated(model: onnx.ModelProto, explain: Explain = silent) -> str:
    """The source of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        onnx.save(model, path)
        return generate(path, explain=explain).text


def plain(count: int) -> list[Statement]:
    """Statements without weights."""
    steps: list[Step] = ["ops.tanh({x})"] * count
    return parsed(chain(steps, scope="")).body.statements
