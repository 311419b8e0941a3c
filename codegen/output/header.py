"""The header of a generated page: where it is from, its inputs and its outputs."""

from __future__ import annotations

from typing import Any

from burnish.codegen.names.identifier import Identifier, plain
from burnish.codegen.output.generated import Options
from burnish.codegen.program import Program, Value
from burnish.codegen.readers import Source
from burnish.codegen.render import Header
from burnish.codegen.render.layout import wrapped
from burnish.codegen.render.names import input_names
from burnish.codegen.signature import LINES


def header(source: Source, program: Program, options: Options, where: str) -> Header:
    """The header of the page of a program that was read from a file."""
    lines = [
        f"Imported from {plain(source.path.name)} (opset {source.opset}), sha256",
        f"{source.sha256};",
        *wrapped(f"{where}."),
        *LINES,
    ]
    names = input_names(program.inputs)
    accepts = ((names[v], _spec(v)) for v in program.inputs if v.dtype)
    usual: dict[str, Any] = {names[v]: given for v, given in program.optional.items()}
    return Header(_title(program), tuple(lines), tuple(accepts), usual, options.typed)


def _title(program: Program) -> str:
    """`images -> logits`"""
    before = ", ".join(Identifier.variable(value.hint) for value in program.inputs)
    after = ", ".join(plain(name) for name in program.output_names)
    title = f"{before} -> {after}"
    if len(title) > 80:
        counts = (len(program.inputs), "input"), (len(program.output_names), "output")
        title = " -> ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in counts)
    return title


def _spec(value: Value) -> str:
    """`float32[batch, 28, 28]`"""
    if value.shape is None:
        return f"{value.dtype}[...]"
    sizes = [
        str(d) if isinstance(d, int) else d if d and d.isidentifier() else "_"
        for d in value.shape
    ]
    return f"{value.dtype}[{', '.join(sizes)}]"
