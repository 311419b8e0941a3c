"""Render statements as lines."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    Expression,
    If,
    ListOrTuple,
    Literal,
    Loop,
    Statement,
    Value,
)
from burnish.codegen.render.layout import fits, laid_out
from burnish.codegen.render.words import Names, text

INDENT = 4


def function_body(
    block: Block, names: Names, indent: int
) -> list[tuple[list[str], int]]:
    """The lines of each statement and of the `return`, with the statement's place."""
    parts = [
        (statement_lines(statement, names, indent), place)
        for place, statement in enumerate(block.statements)
    ]
    returned = returns(block.results, names, indent)
    return [*parts, (returned, len(block.statements))]


def returns(results: Sequence[Expression], names: Names, indent: int) -> list[str]:
    if len(results) == 1:
        return laid_out("return ", results[0], names, indent)
    line = f"{' ' * indent}return {', '.join(text(r, names) for r in results)}"
    if len(line) <= 88:
        return [line]
    return laid_out("return ", ListOrTuple(tuple(results), "()"), names, indent)


def statement_lines(statement: Statement, names: Names, indent: int) -> list[str]:
    match statement:
        case Assign(targets=targets, expression=expression):
            return _assigned([names[t] for t in targets], expression, names, indent)
        case If():
            return _if(statement, names, indent)
        case Loop():
            return _loop(statement, names, indent)
    raise TypeError(f"no lines for {type(statement).__name__}")


def _assigned(
    targets: list[str], expression: Expression, names: Names, indent: int
) -> list[str]:
    if isinstance(expression, Value) and targets == [names[expression]]:
        return []
    left, pad = ", ".join(targets), " " * indent
    lines = laid_out(f"{left} = ", expression, names, indent)
    if len(targets) == 1 or fits(lines[0]):
        return lines
    whole = f"{pad}    {text(expression, names)}"
    if fits(opening := f"{pad}{left} = (") and fits(whole):
        return [opening, whole, f"{pad})"]
    each = [f"{pad}    {target}," for target in targets]
    return [f"{pad}(", *each, *laid_out(") = ", expression, names, indent)]


def _lines(block: Block, names: Names, indent: int) -> list[str]:
    return [
        line for s in block.statements for line in statement_lines(s, names, indent)
    ]


def _together(
    targets: Sequence[str], values: Sequence[Expression], names: Names, indent: int
) -> list[str]:
    """`a, b = c, d`, without the pairs that say `a = a`."""
    pairs = [
        (target, value)
        for target, value in zip(targets, values, strict=True)
        if text(value, names) != target
    ]
    if not pairs:
        return []
    if len(pairs) == 1:
        return laid_out(f"{pairs[0][0]} = ", pairs[0][1], names, indent)
    left = ", ".join(target for target, _ in pairs)
    right = ", ".join(text(value, names) for _, value in pairs)
    line = f"{' ' * indent}{left} = {right}"
    if len(line) <= 88:
        return [line]
    values = tuple(value for _, value in pairs)
    return laid_out(f"{left} = ", ListOrTuple(values, "()"), names, indent)


def _if(
    statement: If, names: Names, indent: int, in_one_line: bool = True
) -> list[str]:
    """An `if`; in_one_line: `x = a if c else b` where that fits."""
    pad = " " * indent
    targets = [names[t] for t in statement.targets]
    condition = text(statement.condition, names)

    first, second = (
        _together(targets, block.results, names, indent + INDENT)
        for block in statement.blocks()
    )
    then = _lines(statement.then, names, indent + INDENT) + first
    lines = [f"{pad}if {condition}:", *(then or [f"{pad}    pass"])]
    inner = _only_if(statement.otherwise, second)
    is_long = inner is not None and _is_nested(inner)
    otherwise = second
    if not is_long:
        otherwise = _lines(statement.otherwise, names, indent + INDENT) + second
    if in_one_line and len(targets) == 1:
        line = _choice(targets[0], condition, then, otherwise)
        if line:
            return [pad + line]
    if inner and (is_long or len(otherwise) > 1 or len(then) == 1):
        behind = _if(inner, names, indent, in_one_line=False)
        return [*lines, f"{pad}el{behind[0].lstrip()}", *behind[1:]]
    return [*lines, f"{pad}else:", *otherwise] if otherwise else lines


def _only_if(block: Block, results: list[str]) -> If | None:
    """The `if` that is all that a block does."""
    only = block.statements[0] if len(block.statements) == 1 else None
    return only if isinstance(only, If) and not results else None


def _is_nested(statement: If) -> bool:
    """Whether it is no single line for sure; then a long chain is laid out once."""
    return any(inner.blocks() for b in statement.blocks() for inner in b.statements)


def _choice(
    target: str, condition: str, then: list[str], otherwise: list[str]
) -> str | None:
    """`x = a if c else b`, where it is one line and no choice inside another."""
    start = f"{target} = "
    for lines in (then, otherwise):
        if len(lines) != 1 or not lines[0].lstrip().startswith(start):
            return None
    taken, other = (
        lines[0].lstrip().removeprefix(start) for lines in (then, otherwise)
    )
    words = condition.split()
    if words[0] == "not" and not {"and", "or", "if"} & set(words):
        condition, taken, other = condition.removeprefix("not "), other, taken
    indent = len(then[0]) - len(then[0].lstrip()) - INDENT
    line = f"{start}{taken} if {condition} else {other}"
    nested = any(f" {word} " in f" {taken} {other} " for word in ("if", "lambda"))
    is_choice = taken != other and not nested
    return line if is_choice and indent + len(line) <= 88 else None


def _loop(statement: Loop, names: Names, indent: int) -> list[str]:
    pad = " " * indent
    carried = [names[v] for v in statement.carried]
    collected = [names[t] for t in statement.targets[len(carried) :]]
    lines = _together(carried, statement.initial, names, indent)
    lines += [f"{pad}{name} = []" for name in collected]
    going = names[statement.going] if statement.going is not None else None
    inner = indent + INDENT
    body = _lines(statement.body, names, inner)
    results = list(statement.body.results)
    targets = list(carried)
    if going is not None:
        targets.insert(0, going)
    count = len(targets)
    for name, element in zip(collected, results[count:], strict=True):
        body += laid_out(f"{name}.append(", element, names, inner, ")")
    body += _together(targets, results[:count], names, inner)
    lines += _head(statement, names, going, pad)
    if statement.count is not None and going is not None:
        body = [f"{pad}    if not {going}:", f"{pad}        break", *body]
    return [*lines, *(body or [f"{pad}    pass"])]


def _head(statement: Loop, names: Names, going: str | None, pad: str) -> list[str]:
    start = []
    if going is not None and statement.condition is not None:
        start = [f"{pad}{going} = {text(statement.condition, names)}"]
        if start[0].strip() == f"{going} = {going}":
            start = []
    index = names[statement.index] if statement.index is not None else "_"
    if statement.beside:
        values, iterables = zip(*statement.iterables(), strict=True)
        paired = Call("zip", iterables, (("strict", Literal(True)),))
        head = f"for {', '.join(names[value] for value in values)} in "
        return [*start, *laid_out(head, paired, names, len(pad), ":")]
    if statement.items is not None:
        return [*start, f"{pad}for {index} in {text(statement.items, names)}:"]
    if statement.count is not None:
        counted = Call("range", (statement.count,))
        return [*start, f"{pad}for {index} in {text(counted, names)}:"]
    return [*start, f"{pad}while {going or text(Literal(True), names)}:"]
