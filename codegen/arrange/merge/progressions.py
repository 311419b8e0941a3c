"""One constructor for several: equal ones, or with sizes in progression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from burnish.codegen.program import BinOp, Call, Expression, Literal, Name

_TELLING = 3
"""Two sizes are always in arithmetic progression; more are evidence."""

_DOUBLING = 4
"""Stages often have 64, 128 and 256 channels; as many that double are evidence."""


def progression(made: Sequence[Expression]) -> Expression | None:
    """The constructor of item `i` as an expression of `i`; None where there is none."""
    calls = [m for m in made if isinstance(m, Call)]
    return _call(calls) if len(calls) == len(made) else None


def _call(made: Sequence[Call]) -> Call | None:
    made = _with_switches(made)
    first = made[0]
    names = [name for name, _ in first.options]
    if first.function in ("nn.Param", "nn.Buffer") or any(
        m.function != first.function
        or len(m.args) != len(first.args)
        or [name for name, _ in m.options] != names
        for m in made
    ):
        return None
    args = [_part([m.args[i] for m in made]) for i in range(len(first.args))]
    options = [_part([m.options[i][1] for m in made]) for i in range(len(names))]
    given = [part for part in (*args, *options) if part is not None]
    if len(given) < len(args) + len(options):
        return None
    positional, rest = given[: len(args)], given[len(args) :]
    return Call(first.function, tuple(positional), tuple(zip(names, rest, strict=True)))


def _with_switches(made: Sequence[Call]) -> Sequence[Call]:
    """The calls with equal options: flags that only some of them pass are added."""
    given = [dict(m.options) for m in made]
    names = list(dict.fromkeys(name for options in given for name in options))
    held = [options[name] for options in given for name in names if name in options]
    if "." in made[0].function or not all(map(_is_flag, held)):
        return made
    off = Literal(False)
    return [
        replace(m, options=tuple((name, options.get(name, off)) for name in names))
        for m, options in zip(made, given, strict=True)
    ]


def _is_flag(made: Expression) -> bool:
    return isinstance(made, Literal) and type(made.value) is bool


def _place(flags: list[bool]) -> Expression | None:
    """Which of the parts it is that have a switch on."""
    first, *others = flags
    if len(set(others)) == 1 and first != others[0]:
        return BinOp("==" if first else ">", Name("i"), Literal(0))
    if len(flags) >= _TELLING and all(a != b for a, b in pairwise(flags)):
        return BinOp("==", BinOp("%", Name("i"), Literal(2)), Literal(int(not first)))
    return None


def _part(parts: Sequence[Expression]) -> Expression | None:
    first = parts[0]
    if all(isinstance(part, Call) for part in parts):
        return progression(parts)
    if len({repr(part) for part in parts}) == 1:
        return first
    values = [part.value for part in parts if isinstance(part, Literal)]
    if len(values) == len(parts) and all(type(value) is bool for value in values):
        return _place(values)
    if len(values) < len(parts) or not all(type(value) is int for value in values):
        return None
    return grown(values)


def grown(values: list[int]) -> Expression | None:
    """The integers in progression as an expression of `i`; None where they are not."""
    i: Expression = Name("i")
    return _arithmetic(values, i) or _geometric(values, i, _DOUBLING) or _cycle(values)


def _arithmetic(values: list[int], i: Expression) -> Expression | None:
    steps = {after - before for before, after in pairwise(values)}
    if len(steps) != 1 or len(values) < _TELLING:
        return None
    step = steps.pop()
    grown = i if abs(step) == 1 else BinOp("*", Literal(abs(step)), i)
    return BinOp("+" if step > 0 else "-", Literal(values[0]), grown)


def _geometric(values: list[int], i: Expression, least: int) -> Expression | None:
    """`3 * 2**i`, and `2 ** (i + 1)` where the first is a power itself."""
    first, second = values[:2]
    if len(values) < least or first < 1 or second <= first or second % first:
        return None
    ratio = second // first
    if any(after != before * ratio for before, after in pairwise(values)):
        return None
    if first == ratio:
        return BinOp("**", Literal(ratio), BinOp("+", i, Literal(1)))
    power = BinOp("**", Literal(ratio), i)
    return power if first == 1 else BinOp("*", Literal(first), power)


def _cycle(values: list[int]) -> Expression | None:
    """A progression that starts again, as the dilations 1, 2, 4, 1, 2, 4 do."""
    for length in range(_TELLING, len(values) - _TELLING + 1):
        if all(value == values[n % length] for n, value in enumerate(values)):
            i = BinOp("%", Name("i"), Literal(length))
            once = values[:length]
            return _arithmetic(once, i) or _geometric(once, i, _TELLING)
    return None
