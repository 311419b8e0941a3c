"""Render expressions as Python text, with no more parentheses than needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from keyword import iskeyword
from typing import Any

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
    Name,
    Numbered,
    Repeat,
    SelfAttr,
    Slice,
    Subscript,
    UnaryOp,
    Value,
    walk,
)

_PRECEDENCE = {
    "or": 2,
    "and": 3,
    "not ": 4,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "is", "is not"), 5),
    "|": 6,
    "^": 7,
    "&": 8,
    "<<": 9,
    ">>": 9,
    "+": 10,
    "-": 10,
    **dict.fromkeys(("*", "/", "//", "%", "@"), 11),
    "**": 13,
}
_CONDITIONAL, _UNARY, _POSTFIX, _ATOM = 1, 12, 15, 16

_THOUSANDS = "000000.0"

Names = Mapping[Value, str]


def text(expression: Expression, names: Names) -> str:
    """The expression as one line."""
    return _text(expression, names)[0]


def _text(expression: Expression, names: Names) -> tuple[str, int]:
    """The text, and how strongly it binds."""
    match expression:
        case Value():
            return names[expression], _ATOM
        case Literal(value=value):
            words = literal(value)
            return words, _UNARY if words.startswith("-") else _ATOM
        case Name(text=words):
            return words, _POSTFIX
        case SelfAttr(path=path):
            return own(path), _POSTFIX
        case BinOp(operator=operator, left=left, right=right):
            return _infix(operator, left, right, names)
        case UnaryOp(operator=operator, operand=operand):
            binding = _PRECEDENCE[operator] if operator == "not " else _UNARY
            power = isinstance(operand, BinOp) and operand.operator == "**"
            tight = _POSTFIX if power or operator == "*" else binding
            inner = bracketed(operand, tight, names)
            if isinstance(operand, UnaryOp | Literal) and (operator, inner[0]) == (
                "-",
                "-",
            ):
                return _negative(operand, names)
            return operator + inner, binding
        case Conditional(then=then, condition=condition, otherwise=otherwise):
            yes, asked = (
                bracketed(e, _CONDITIONAL + 1, names) for e in (then, condition)
            )
            no = bracketed(otherwise, _CONDITIONAL, names)
            return f"{yes} if {asked} else {no}", _CONDITIONAL
        case Subscript(target=target, keys=keys):
            inside = ", ".join(_key(key, names) for key in keys)
            if len(keys) == 1 and isinstance(keys[0], ListOrTuple):
                inside = text(keys[0], names)
            return f"{bracketed(target, _POSTFIX, names)}[{inside}]", _POSTFIX
        case Attribute(target=target, name=name):
            return f"{bracketed(target, _POSTFIX, names)}.{name}", _POSTFIX
        case Keyed(items=items):
            pairs = (f"{quoted(key)}: {text(value, names)}" for key, value in items)
            return f"{{{', '.join(pairs)}}}", _ATOM
        case Numbered(stem=stem, index=index):
            words = quoted(stem.replace("{", "{{").replace("}", "}}"))
            return f"f{words[:-1]}{{{text(index, names)}}}{words[-1]}", _ATOM
        case Repeat():
            opening, item, turns, closing = repeated(expression, names)
            return f"{opening}{item} {turns}{closing}", _ATOM
    opening, parts, closing = pieces(expression, names)
    positional = ", ".join(text(part, names) for part in parts)
    return opening + _joined(expression, names, positional) + closing, _POSTFIX


def _negative(expression: UnaryOp | Literal, names: Names) -> tuple[str, int]:
    """-x for x that reads as -y: y, since linters take -(-y) for a decrement.

    The negation of a bool is an int, and so is `+y`.
    """
    if isinstance(expression, Literal):
        return _text(Literal(-expression.value), names)
    if _is_bool(expression.operand):
        return "+" + bracketed(expression.operand, _UNARY, names), _UNARY
    return _text(expression.operand, names)


def _is_bool(expression: Expression) -> bool:
    """Whether the value may be a bool of Python's, whose negation is an int."""
    match expression:
        case Literal(value=value):
            return isinstance(value, bool)
        case Value(dtype=dtype):
            return dtype == "bool"
        case BinOp(operator=operator):
            return _PRECEDENCE[operator] <= _PRECEDENCE["&"]
        case UnaryOp(operator=operator):
            return operator == "not "
        case Conditional(then=then, otherwise=otherwise):
            return _is_bool(then) or _is_bool(otherwise)
        case Call(function="max" | "min", args=items) | ListOrTuple(items=items):
            return any(map(_is_bool, items))
        case Subscript(target=target):
            return _is_bool(target)
    return False


def repeated(expression: Repeat, names: Names) -> tuple[str, str, str, str]:
    """The parts of a comprehension: bracket, item, `for i in range(n)`, bracket."""
    item, count = text(expression.item, names), text(expression.count, names)
    if expression.name is not None:
        item = f"{text(expression.name, names)}: {item}"
    counts = expression.name is not None or any(
        isinstance(part, Name) and part.text == "i" for part in walk(expression.item)
    )
    opening, closing = "[]" if expression.name is None else "{}"
    return opening, item, f"for {'i' if counts else '_'} in range({count})", closing


def _joined(expression: Expression, names: Names, positional: str) -> str:
    options = getattr(expression, "options", ())
    named = ", ".join(f"{key}={text(value, names)}" for key, value in options)
    inside = ", ".join(filter(None, (positional, named)))
    if isinstance(expression, ListOrTuple) and expression.brackets == "()":
        return f"{inside}," if len(expression.items) == 1 else inside
    return inside


def pieces(
    expression: Expression, names: Names
) -> tuple[str, tuple[Expression, ...], str]:
    """The opening, the positional parts and the closing of a bracketed expression."""
    match expression:
        case Call(function=function, args=args):
            return f"{function}(", args, ")"
        case Method(target=target, name=name, args=args):
            return f"{bracketed(target, _POSTFIX, names)}.{name}(", args, ")"
        case ModuleCall(target=SelfAttr(path=("",)), inputs=inputs):
            return "super().forward(", inputs, ")"
        case ModuleCall(target=target, inputs=inputs):
            return f"{bracketed(target, _POSTFIX, names)}(", inputs, ")"
        case ListOrTuple(items=items, brackets=brackets):
            return brackets[0], items, brackets[1]
    raise TypeError(f"no text for {type(expression).__name__}")


def bracketed(expression: Expression, binding: int, names: Names) -> str:
    """The text, in parentheses where it binds less than `binding`."""
    words, strength = _text(expression, names)
    number = binding == _POSTFIX and words[0].isdigit()  # `1.real` is no attribute
    return f"({words})" if strength < binding or number else words


def _infix(
    operator: str, left: Expression, right: Expression, names: Names
) -> tuple[str, int]:
    binding = _PRECEDENCE[operator]
    if operator == "**":
        a, b = bracketed(left, binding + 1, names), bracketed(right, _UNARY, names)
        bracketed_sign = a[0] == "(" and not isinstance(left, Attribute)
        simple = not bracketed_sign and _simple(left) and _simple(right)
        return (f"{a}**{b}" if simple else f"{a} ** {b}"), binding
    compares = binding == _PRECEDENCE["=="]
    a = bracketed(left, binding + compares, names)
    return f"{a} {operator} {bracketed(right, binding + 1, names)}", binding


def operands(expression: BinOp, names: Names) -> list[str]:
    """`a + b - c` as ["a", "+ b", "- c"]."""
    binding = _PRECEDENCE[expression.operator]
    left, right = expression.left, bracketed(expression.right, binding + 1, names)
    chains = binding not in (_PRECEDENCE["**"], _PRECEDENCE["=="])
    if chains and isinstance(left, BinOp) and _PRECEDENCE[left.operator] == binding:
        first = operands(left, names)
    else:
        first = [bracketed(left, binding + (not chains), names)]
    return [*first, f"{expression.operator} {right}"]


def _simple(expression: Expression) -> bool:
    """Whether a formatter writes the operand without spaces around `**`."""
    if isinstance(expression, Attribute):
        return _simple(expression.target)
    if isinstance(expression, SelfAttr | Name):
        return "[" not in text(expression, {})
    if isinstance(expression, UnaryOp) and expression.operator != "not ":
        return _simple(expression.operand)
    return _plain(expression)


def _plain(expression: Expression) -> bool:
    """Whether a formatter writes the bound without spaces around `:`."""
    match expression:
        case UnaryOp(operator="-" | "~", operand=operand):
            return _plain(operand)
        case Name(text=words):
            return words.isidentifier()
        case Literal(value=value):
            return not isinstance(value, tuple | list) and literal(value)[-1] != ")"
    return isinstance(expression, Value)


def _key(key: Expression, names: Names) -> str:
    if not isinstance(key, Slice):
        return text(key, names)
    bounds = [key.start, key.stop] + ([key.step] if key.step is not None else [])
    plain = all(b is None or _plain(b) for b in bounds)
    words = ["" if b is None else text(b, names) for b in bounds]
    if plain:
        return ":".join(words)
    spaced = f"{words[0]} :" if words[0] else ":"
    spaced += f" {words[1]}" if words[1] else ""
    if len(words) == 3:
        spaced += f" : {words[2]}" if words[1] else f": {words[2]}"
    return spaced


def own(path: tuple[str | int, ...]) -> str:
    """`self.layers[0].conv`"""
    first, *rest = path
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest]
    return (attribute(str(first)) if first else "self") + "".join(parts)


def attribute(name: str) -> str:
    """`self.conv`; a name that is not an identifier is read from `vars(self)`."""
    if name.isidentifier() and name.isascii() and not iskeyword(name):
        return f"self.{name}"
    return f"vars(self)[{quoted(name)}]"


def literal(value: Any) -> str:
    """A Python constant as people write it."""
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return "b" + quoted(value.decode("latin-1"), ascii_only=True)
    if isinstance(value, tuple):
        inside = ", ".join(map(literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return "..." if value is ... else repr(value)


def number(value: float) -> str:
    """1e-5, 0.5, 3.0; infinities through `float`."""
    if not math.isfinite(value):
        return f'float("{value}")'
    words = repr(value)
    if words.endswith(_THOUSANDS):  # 1e6, but 100000.0
        zeros = len(words) - len(words[:-2].rstrip("0")) - 2
        words = f"{words[: -2 - zeros]}e{zeros}"
    return words.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def quoted(words: str, ascii_only: bool = False) -> str:
    """A string literal in double quotes, unless single ones need fewer escapes."""
    plain = words.isprintable() and (words.isascii() or not ascii_only)
    inside = words
    if not plain or "\\" in words:
        inside = "".join(_escaped(c, ascii_only) for c in words)
    if words.count('"') > words.count("'"):
        return "'" + inside.replace("'", "\\'") + "'"
    return '"' + inside.replace('"', '\\"') + '"'


def _escaped(character: str, ascii_only: bool) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable() and (character.isascii() or not ascii_only):
        return character
    if ascii_only:
        return f"\\x{ord(character):02x}"
    return character.encode("unicode_escape").decode("ascii")
