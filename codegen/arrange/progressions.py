"""One constructor for many: equal, or with sizes that grow from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from burnish.codegen.program import Call, Expression, Infix, Literal, Name

_TELLING = 3
"""So many sizes in a row tell how they grow."""


def progression(made: Sequence[Expression]) -> Expression | None:
    """The constructor of the part with the number `i`; None where there is none."""
    first = made[0]
    if not isinstance(first, Call) or not all(isinstance(m, Call) for m in made):
        return None
    return _call([m for m in made if isinstance(m, Call)])


def _call(made: Sequence[Call]) -> Call | None:
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


def _part(parts: Sequence[Expression]) -> Expression | None:
    first = parts[0]
    if all(isinstance(part, Call) for part in parts):
        return _call([part for part in parts if isinstance(part, Call)])
    if len({repr(part) for part in parts}) == 1:
        return first
    values = [part.value for part in parts if isinstance(part, Literal)]
    if len(values) < len(parts) or not all(type(value) is int for value in values):
        return None
    steps = {after - before for before, after in pairwise(values)}
    if len(steps) != 1 or len(values) < _TELLING:
        return None
    grown = Infix("*", Literal(steps.pop()), Name("i"))
    return Infix("+", first, grown)
