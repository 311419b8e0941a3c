"""Make one loop of statements that are candidates for its iterations.

The turns must be alike but for their values and the integers in their indices. A value
that a turn reads is the loop's own, loop-invariant, or carried from the turn before; an
integer is the same in all turns or counts on with the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from burnish.codegen.arrange.analysis.structural_hash import outline
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    Change,
    Expression,
    ListOrTuple,
    Literal,
    Loop,
    Name,
    Slice,
    Statement,
    Subscript,
    UnaryOp,
    Value,
    defined,
)

_LIST = frozenset(("ops.stack", "ops.concat"))
_ANY_INDEX = Name("index")


def word(statement: Statement) -> str:
    """Text that is equal for statements alike but for values and numbers in indices."""
    opened = _visited(statement, lambda e: e if isinstance(e, Value) else _ANY_INDEX)
    return outline([opened])[0]


def loop_of(
    turns: Sequence[Sequence[Statement]],
    rest: Sequence[Statement],
    results: Sequence[Expression],
) -> tuple[Loop, Change] | None:
    """The loop, and the change of its readers; None where the turns are no loop.

    rest: the statements around the turns; results: those of the whole block.
    """
    words = [[word(statement) for statement in turn] for turn in turns]
    if any(each != words[0] for each in words):
        return None
    return _Turns(turns).loop(rest, results)


def _leaves(statement: Statement) -> list[Expression]:
    """The values and the numbers in an index, in a fixed order."""
    found: list[Expression] = []

    def record(leaf: Expression) -> Expression:
        found.append(leaf)
        return leaf

    _visited(statement, record)
    return found


def _visited(statement: Statement, change: Change) -> Statement:
    """The statement with its values, and the numbers in its indices, changed."""

    def visit(expression: Expression) -> Expression:
        if isinstance(expression, Value):
            return change(expression)
        if isinstance(expression, Subscript):
            target = visit(expression.target)
            return Subscript(target, tuple(map(key, expression.keys)))
        return expression.rebuilt(visit)

    def key(expression: Expression) -> Expression:
        if isinstance(expression, Literal) and type(expression.value) is int:
            return change(expression)
        if isinstance(expression, Slice):
            return expression.rebuilt(key)
        return visit(expression)

    return statement.rebuilt(visit)


class _Turns:
    def __init__(self, turns: Sequence[Sequence[Statement]]):
        self.turns = turns
        self.made = [[v for s in turn for v in defined(s)] for turn in turns]
        self.places = [{v: i for i, v in enumerate(made)} for made in self.made]
        self.own: dict[Value, Value] = {}
        """The loop's values by those of the first turn."""
        self.carried: dict[tuple[Value, int], Value] = {}
        """The loop-carried values by their initial value and where a turn makes it."""
        self.index = Value("i", "int64", (), host=True, nonnegative=True)
        self.counts = False

    def loop(
        self, rest: Sequence[Statement], results: Sequence[Expression]
    ) -> tuple[Loop, Callable[[Expression], Expression]] | None:
        for statement in self.turns[0]:
            for target in statement.targets:
                place = self.places[0][target]
                self.own[target] = _any_of([made[place] for made in self.made])
        body = self._body()
        ends = [end for _, end in self.carried]
        if body is None or len(set(ends)) < len(ends):
            return None
        lists = self._lists(rest, results, set(ends))
        if lists is None:
            return None
        last, start = self.made[-1], self.made[0]
        collected = {place: Value(start[place].hint) for place in lists}
        handed = (start[place] for place in (*ends, *lists))
        loop = Loop(
            (*(last[place] for place in ends), *collected.values()),
            count=Literal(len(self.turns)),
            index=self.index if self.counts else None,
            carried=tuple(self.carried.values()),
            initial=tuple(initial for initial, _ in self.carried),
            collected=len(collected),
            body=Block(body, [self.own.get(value, value) for value in handed]),
        )
        firsts = {start[place]: value for place, value in collected.items()}
        return loop, lambda expression: self._read(expression, firsts)

    def _body(self) -> list[Statement] | None:
        """The first turn's statements over the loop's values."""
        body = []
        for same in zip(*self.turns, strict=True):
            columns = zip(*map(_leaves, same), strict=True)
            parts = [self._part(column) for column in columns]
            if None in parts:
                return None
            inside = iter(parts)
            made = _visited(same[0], lambda _, p=inside: next(p))  # type: ignore[misc]
            targets = tuple(self.own[target] for target in made.targets)
            body.append(replace(made, targets=targets))
        return body

    def _part(self, column: tuple[Expression, ...]) -> Expression | None:
        """The loop's expression for a value or integer of each iteration."""
        first = column[0]
        if isinstance(first, Literal):
            return self._number([e.value for e in column if isinstance(e, Literal)])
        if all(value is first for value in column):
            return None if first in self.places[0] else first
        values = [value for value in column if isinstance(value, Value)]
        place = self.places[0].get(values[0])
        if place is not None:
            own = zip(values, self.places, strict=True)
            is_own = all(p.get(v) == place for v, p in own)
            return self.own.get(values[0], values[0]) if is_own else None
        found = {p.get(v) for v, p in zip(values[1:], self.places, strict=False)}
        end = found.pop()
        if found or end is None:
            return None
        return self.carried.setdefault((values[0], end), _any_of(values))

    def _number(self, numbers: list[int]) -> Expression | None:
        step = numbers[1] - numbers[0]
        if numbers != [numbers[0] + step * i for i in range(len(numbers))]:
            return None
        if not step:
            return Literal(numbers[0])
        self.counts = True
        size = abs(step)
        by = self.index if size == 1 else BinOp("*", Literal(size), self.index)
        if not numbers[0]:
            return by if step > 0 else UnaryOp("-", by)
        if step < 0:
            return BinOp("-", Literal(numbers[0]), by)
        sign, amount = ("+", numbers[0]) if numbers[0] > 0 else ("-", -numbers[0])
        return BinOp(sign, by, Literal(amount))

    # --- values that are live after the loop ---

    def _lists(
        self,
        rest: Sequence[Statement],
        results: Sequence[Expression],
        ends: set[int],
    ) -> list[int] | None:
        """The places whose values of all turns are read; None where others are."""
        inside = {v for made in self.made for v in made}
        fine = {self.made[-1][place] for place in ends}
        lists: list[int] = []

        def look(expression: Expression) -> Expression:
            if isinstance(expression, Value) and expression in inside - fine:
                raise LookupError
            if (row := self._row(expression)) is None:
                return expression.rebuilt(look)
            before, place = row
            lists.append(place)
            for item in before:
                look(item)
            return expression

        try:
            for statement in rest:
                statement.rebuilt(look)
            for result in results:
                look(result)
        except LookupError:
            return None
        return list(dict.fromkeys(lists))

    def _row(self, expression: Expression) -> tuple[tuple[Expression, ...], int] | None:
        """The place whose values of all turns a call takes in their order, last.

        And what it takes before them.
        """
        if not isinstance(expression, Call) or expression.function not in _LIST:
            return None
        listed = expression.args[0]
        items = listed.items if isinstance(listed, ListOrTuple) else ()
        if len(items) < len(self.turns):
            return None
        before, items = items[: -len(self.turns)], items[-len(self.turns) :]
        first = items[0]
        place = self.places[0].get(first) if isinstance(first, Value) else None
        if place is None:
            return None
        own = zip(items, self.made, strict=True)
        is_row = all(arg is made[place] for arg, made in own)
        return (before, place) if is_row else None

    def _read(self, expression: Expression, lists: dict[Value, Value]) -> Expression:
        if (row := self._row(expression)) is None:
            return expression.rebuilt(lambda child: self._read(child, lists))
        before, place = row
        held: Expression = lists[self.made[0][place]]
        if before:
            held = ListOrTuple((*before, UnaryOp("*", held)))
        return replace(expression, args=(held,))  # type: ignore[type-var]


def _any_of(values: Sequence[Value]) -> Value:
    """One value for all turns; sizes that differ are unknown."""
    first = values[0]
    shapes = [value.shape for value in values]
    shape = None
    if all(each is not None and len(each) == first.rank for each in shapes):
        columns = zip(*(each or () for each in shapes), strict=True)
        shape = tuple(c[0] if len(set(c)) == 1 else None for c in columns)
    return replace(first, shape=shape)
