"""Lines of at most 88 columns, broken as a formatter would break them."""

from __future__ import annotations

import textwrap

from burnish.codegen.program import (
    Attribute,
    BinOp,
    Call,
    Conditional,
    Expression,
    Keyed,
    ListOrTuple,
    Literal,
    Method,
    ModuleCall,
    Repeat,
    SelfAttr,
    Subscript,
    UnaryOp,
)
from burnish.codegen.render.words import Names, operands, pieces, quoted, repeated, text

WIDTH = 88


def fits(line: str) -> bool:
    return len(line) <= WIDTH


def wrapped(prose: str) -> list[str]:
    """Lines of a docstring at the margin; names and options stay whole."""
    return textwrap.wrap(prose, WIDTH, break_long_words=False, break_on_hyphens=False)


def _is_path(expression: Expression) -> bool:
    """Whether it is an attribute at any depth: `self.encoder.embed.weight`."""
    while isinstance(expression, Attribute):
        expression = expression.target
    return isinstance(expression, SelfAttr)


def laid_out(
    prefix: str, expression: Expression, names: Names, indent: int, suffix: str = ""
) -> list[str]:
    """`prefix expression suffix`, on one line or with its outer brackets broken."""
    pad = " " * indent
    line = f"{pad}{prefix}{text(expression, names)}{suffix}"
    if fits(line):
        return [line]
    if isinstance(expression, Repeat):
        opening, item, turns, closing = repeated(expression, names)
        inner = [f"{pad}    {item} {turns}"]
        if not fits(inner[0]):
            key = expression.name and f"{text(expression.name, names)}: "
            inner = laid_out(key or "", expression.item, names, indent + 4)
            inner.append(f"{pad}    {turns}")
        return [f"{pad}{prefix}{opening}", *inner, f"{pad}{closing}{suffix}"]
    if isinstance(expression, UnaryOp) and expression.operator == "*":
        starred = f"{prefix}{expression.operator}"
        if isinstance(expression.operand, Conditional):
            return _choice(starred, expression.operand, names, indent, suffix)
        return laid_out(starred, expression.operand, names, indent, suffix)
    if isinstance(expression, Keyed):
        opened = [f"{pad}{prefix}{{"]
        for key, value in expression.items:
            opened += laid_out(f"{quoted(key)}: ", value, names, indent + 4, ",")
        return [*opened, f"{pad}}}{suffix}"]
    if isinstance(expression, Conditional) and prefix.endswith(" ") and not suffix:
        return _choice(prefix, expression, names, indent)
    if isinstance(expression, Literal) and isinstance(expression.value, tuple | list):
        expression = _display(expression.value)
    links = _links(expression, names)
    if len(links) > 2 and not suffix.startswith(")"):
        return _chain(prefix, links, indent, suffix)
    if isinstance(expression, BinOp) and not suffix and prefix.endswith(" "):
        whole = _bracketed_chain(prefix, expression, names, pad)
        return whole or _last_broken(prefix, expression, names, indent) or [line]
    if _is_path(expression) and prefix.endswith(" = "):
        inside = f"{pad}    {text(expression, names)}"
        return [f"{pad}{prefix}(", inside, f"{pad})"] if fits(inside) else [line]
    if not isinstance(expression, ModuleCall | Call | ListOrTuple | Method):
        return [line]
    opening, parts, closing = pieces(expression, names)
    options = getattr(expression, "options", ())
    if not parts and not options:
        return [line]
    head, tail = f"{pad}{prefix}{opening}", f"{pad}{closing}{suffix}"
    if not isinstance(expression, ListOrTuple):
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


def _choice(
    prefix: str, expression: Conditional, names: Names, indent: int, suffix: str = ""
) -> list[str]:
    """`(a if b else c)` on a line of its own, or on three."""
    pad = " " * indent
    whole = f"{pad}    {text(expression, names)}"
    inside = [whole]
    if not fits(whole):
        inside = laid_out("", expression.then, names, indent + 4)
        inside += [f"{pad}    if {text(expression.condition, names)}"]
        inside += laid_out("else ", expression.otherwise, names, indent + 4)
    return [f"{pad}{prefix}(", *inside, f"{pad}){suffix}"]


def _links(expression: Expression, names: Names) -> list[str]:
    """`a.b(1).c(2).d(3)` as `a.b(1)`, `.c(2)`, `.d(3)`: split after each call."""
    whole = text(expression, names)
    if not isinstance(expression, Attribute | Subscript | Method):
        return [whole]
    inner = text(expression.target, names)
    in_brackets = whole.startswith(f"({inner})")
    links = [f"({inner})"] if in_brackets else _links(expression.target, names)
    rest = whole[len("".join(links)) :]
    called = in_brackets or isinstance(
        expression.target, ModuleCall | Call | Subscript | Method
    )
    if isinstance(expression, Subscript) or not called:
        return [*links[:-1], links[-1] + rest]
    return [*links, rest]


def _chain(prefix: str, links: list[str], indent: int, suffix: str) -> list[str]:
    """A chain of calls, one a line; parenthesized where it is a whole statement."""
    if suffix:
        lines = [f"{prefix}{links[0]}", *links[1:]]
        lines[-1] += suffix
        return [" " * indent + line for line in lines]
    pad = " " * indent
    return [f"{pad}{prefix}(", *_inside("", links, pad), f"{pad})"]


def _inside(between: str, words: list[str], pad: str) -> list[str]:
    """What brackets hold: on one line, or a line for each word."""
    whole = f"{pad}    {between.join(words)}"
    return [whole] if fits(whole) else [f"{pad}    {word}" for word in words]


def _bracketed_chain(
    prefix: str, expression: BinOp, names: Names, pad: str
) -> list[str] | None:
    """`(a + b + c)` over several lines; None where a formatter would break a call."""
    words = operands(expression, names)
    if len(words) == 2 and words[1][-1] in ")]":
        return None
    inside = _inside(" ", words, pad)
    if not all(map(fits, inside)):
        if len(words) == 2:
            return None
        inside = _broken_operands(expression, words, names, len(pad) + 4)
    return [f"{pad}{prefix}(", *inside, f"{pad})"]


def _broken_operands(
    expression: Expression, words: list[str], names: Names, indent: int
) -> list[str]:
    """Each operand of a chain on lines of its own; calls that are long are broken."""
    lines: list[str] = []
    for word in reversed(words[1:]):
        assert isinstance(expression, BinOp)
        last, expression = expression.right, expression.left
        lines = _operand(word, last, names, indent) + lines
    return _operand(words[0], expression, names, indent) + lines


def _operand(word: str, operand: Expression, names: Names, indent: int) -> list[str]:
    """`+ b`, which is `word`, with the brackets of b broken where it is too long."""
    line = " " * indent + word
    if fits(line) or not isinstance(operand, ModuleCall | Call | Method):
        return [line]
    return laid_out(word.removesuffix(text(operand, names)), operand, names, indent)


def _last_broken(
    prefix: str, expression: BinOp, names: Names, indent: int
) -> list[str] | None:
    """`a * (` with the last operand's brackets broken; None where nothing fits."""
    words = operands(expression, names)
    if len(words) > 2:
        return None
    first, last = words
    operator = last.split(" ")[0]
    head, right = f"{prefix}{first} {operator} ", expression.right
    if last.startswith(f"{operator} (") and isinstance(right, BinOp):
        pad, words = " " * indent, operands(right, names)
        lines = [f"{pad}{head}(", *_inside(" ", words, pad), f"{pad})"]
    else:
        lines = laid_out(head, right, names, indent)
    return lines if all(map(fits, lines)) else None


def _display(values: tuple[object, ...] | list[object]) -> ListOrTuple:
    brackets = "()" if isinstance(values, tuple) else "[]"
    return ListOrTuple(tuple(map(Literal, values)), brackets)


def broken_signature(
    name: str, parameters: list[str], indent: int, result: str = ""
) -> list[str]:
    """`def name(self, a, b):`, one parameter a line where it is too long."""
    pad = " " * indent
    end = f") -> {result}:" if result else "):"
    line = f"{pad}def {name}({', '.join(parameters)}{end}"
    if fits(line):
        return [line]
    inside = f"{pad}    {', '.join(parameters)}"
    if fits(inside):
        return [f"{pad}def {name}(", inside, f"{pad}{end}"]
    each = [f"{pad}    {parameter}," for parameter in parameters]
    return [f"{pad}def {name}(", *each, f"{pad}{end}"]
