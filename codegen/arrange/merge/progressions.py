"""One constructor for several: equal ones, or with sizes in arithmetic progression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from burnish.codegen.program import BinOp, Call, Expression, Literal, Name

_TELLING = 3
"""Two sizes are always in arithmetic progression; more are evidence."""


def progression(made: Sequence[Expression]) -> Expression | None:
    """The constructor of item `i` as an expression of `i`; None where there is none."""
    first = made[0]
    if not isinstance(first, Call) or not all(isinstance(m, Call) for m in made):
        return None
    return _call([m for m in made if isinstance(m, Call)])


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
        return _call([part for part in parts if isinstance(part, Call)])
    if len({repr(part) for part in parts}) == 1:
        return first
    values = [part.value for part in parts if isinstance(part, Literal)]
    if len(values) == len(parts) and all(type(value) is bool for value in values):
        return _place(values)
    if len(values) < len(parts) or not all(type(value) is int for value in values):
        return None
    steps = {after - before for before, after in pairwise(values)}
    if len(steps) != 1 or len(values) < _TELLING:
        return None
    step = steps.pop()
    grown = Name("i") if abs(step) == 1 else BinOp("*", Literal(abs(step)), Name("i"))
    return BinOp("+" if step > 0 else "-", first, grown)
