"""Lines of at most 88 columns, broken as a formatter would break them."""

from __future__ import annotations

from burnish.codegen.program import (
    Apply,
    Call,
    Display,
    Expression,
    Literal,
    Method,
    Repeat,
)
from burnish.codegen.render.words import Names, pieces, text

WIDTH = 88


def fits(line: str) -> bool:
    return len(line) <= WIDTH


def laid_out(
    prefix: str, expression: Expression, names: Names, indent: int, suffix: str = ""
) -> list[str]:
    """`prefix expression suffix`, on one line or with its outer brackets broken."""
    pad = " " * indent
    line = f"{pad}{prefix}{text(expression, names)}{suffix}"
    if fits(line):
        return [line]
    if isinstance(expression, Repeat):
        item = text(expression.item, names)
        inner = f"{pad}    {item} for _ in range({expression.count})"
        return [f"{pad}{prefix}[", inner, f"{pad}]{suffix}"]
    if isinstance(expression, Literal) and isinstance(expression.value, tuple | list):
        expression = _display(expression.value)
    if not isinstance(expression, Apply | Call | Display | Method):
        return [line]
    opening, parts, closing = pieces(expression, names)
    options = getattr(expression, "options", ())
    if not parts and not options:
        return [line]
    head, tail = f"{pad}{prefix}{opening}", f"{pad}{closing}{suffix}"
    if not isinstance(expression, Display):
        words = [text(part, names) for part in parts]
        words += [f"{key}={text(value, names)}" for key, value in options]
        inside = f"{pad}    {', '.join(words)}"
        if fits(inside):
            return [head, inside, tail]
    lines = [head]
    for part in parts:
        lines += laid_out("", part, names, indent + 4, ",")
    for key, value in options:
        lines += laid_out(f"{key}=", value, names, indent + 4, ",")
    return [*lines, tail]


def _display(values: tuple[object, ...] | list[object]) -> Display:
    brackets = "()" if isinstance(values, tuple) else "[]"
    return Display(tuple(map(Literal, values)), brackets)


def broken_signature(name: str, parameters: list[str], indent: int) -> list[str]:
    """`def name(self, a, b):`, one parameter a line where it is too long."""
    pad = " " * indent
    line = f"{pad}def {name}({', '.join(parameters)}):"
    if fits(line):
        return [line]
    inside = f"{pad}    {', '.join(parameters)}"
    if fits(inside):
        return [f"{pad}def {name}(", inside, f"{pad}):"]
    each = [f"{pad}    {parameter}," for parameter in parameters]
    return [f"{pad}def {name}(", *each, f"{pad}):"]
