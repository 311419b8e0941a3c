"""Loop rerolling: repeated statements over the same modules become a loop.

A block that is called again and again, a cell over the elements of a sequence: what one
turn gives the next one takes; numbers that count on in an index are the loop's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from burnish.codegen.arrange.analysis.structural_hash import outline
from burnish.codegen.arrange.analysis.tandem_repeats import best_run
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    Expression,
    ListOrTuple,
    Literal,
    Loop,
    Name,
    SelfAttr,
    Slice,
    Statement,
    Subscript,
    Value,
    defined,
    every_expression,
)

_LIST = frozenset(("ops.stack", "ops.concat"))
_OPEN = Name("#")
_SEVERAL = 4
"""Two iterations of fewer statements are as short written out as a loop."""


def rolled(block: Block) -> Block:
    """The block with loops where its statements repeat with modules of its own."""
    called = Counter(path for s in block.statements for path in _owned(s))
    if not any(times > 1 for times in called.values()):
        return block
    statements, results = list(block.statements), list(block.results)
    words = [outline([_opened(s)])[0] for s in statements]
    numbers: dict[str, int] = {}
    sequence = [numbers.setdefault(word, len(numbers)) for word in words]
    weights = [len(list(_owned(s))) for s in statements]
    used = len(numbers)
    while run := best_run(sequence, weights):
        for start in range(run.start, run.start + run.rest + 1):
            end = start + run.period * run.count
            turns = [
                statements[i : i + run.period] for i in range(start, end, run.period)
            ]
            rest = [*statements[:start], *statements[end:]]
            made = _Turns(turns).loop(rest, results) if _worth(turns) else None
            if made is not None:
                loop, change = made
                statements = [
                    *(s.rebuilt(change) for s in statements[:start]),
                    loop,
                    *(s.rebuilt(change) for s in statements[end:]),
                ]
                results = [change(result) for result in results]
                sequence[start:end], weights[start:end] = [used], [0]
                used += 1
                break
        else:
            places = range(run.start, run.start + run.period * run.count + run.rest)
            for place in places:
                sequence[place] = used = used + 1
    return Block(statements, results)


def _owned(statement: Statement) -> Iterator[tuple[str | int, ...]]:
    """The modules and weights of the class that a statement reads."""
    for expression in every_expression(statement):
        if isinstance(expression, SelfAttr):
            yield expression.path


def _worth(turns: list[list[Statement]]) -> bool:
    """Whether a loop is shorter: three iterations, or two of several statements."""
    return len(turns) > 2 or len(turns[0]) >= _SEVERAL


# --- statements with their numbers and values left open ---


def _opened(statement: Statement) -> Statement:
    """The statement without the integers in its indices."""
    return _visited(statement, lambda leaf: leaf if isinstance(leaf, Value) else _OPEN)


def _leaves(statement: Statement) -> list[Expression]:
    """The values and the numbers in an index, in a fixed order."""
    found: list[Expression] = []

    def record(leaf: Expression) -> Expression:
        found.append(leaf)
        return leaf

    _visited(statement, record)
    return found


def _visited(
    statement: Statement, change: Callable[[Expression], Expression]
) -> Statement:
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


# --- turns ---


@dataclass
class _Carried:
    """A loop-carried value: its initial value, and its position in a turn's results."""

    initial: Value
    place: int
    inside: Value


class _Turns:
    """Candidate statements for the iterations of one loop."""

    def __init__(self, turns: list[list[Statement]]):
        self.turns = turns
        self.made = [[v for s in turn for v in defined(s)] for turn in turns]
        self.places = [{v: i for i, v in enumerate(made)} for made in self.made]
        self.carried: dict[tuple[Value, int], _Carried] = {}
        self.index = Value("i", "int64", (), host=True, nonnegative=True)
        self.counts = False

    def loop(
        self, rest: Sequence[Statement], results: Sequence[Expression]
    ) -> tuple[Loop, Callable[[Expression], Expression]] | None:
        """The loop, and the change of its readers; None where it is not a loop.

        rest: the statements around the turns.
        """
        first = [_leaves(s) for s in self.turns[0]]
        others = [[_leaves(s) for s in turn] for turn in self.turns[1:]]
        body = []
        for i, statement in enumerate(self.turns[0]):
            columns = zip(first[i], *(other[i] for other in others), strict=True)
            parts = [self._part(column) for column in columns]
            if None in parts:
                return None
            inside = iter(parts)
            body.append(_visited(statement, lambda _, p=inside: next(p)))  # type: ignore[misc]
        ends = [each.place for each in self.carried.values()]
        if len(set(ends)) < len(ends):
            return None
        lists = self._lists(rest, results, set(ends))
        if lists is None:
            return None
        last, start = self.made[-1], self.made[0]
        collected = {place: Value(start[place].hint) for place in lists}
        loop = Loop(
            (*(last[place] for place in ends), *collected.values()),
            count=Literal(len(self.turns)),
            index=self.index if self.counts else None,
            carried=tuple(each.inside for each in self.carried.values()),
            initial=tuple(each.initial for each in self.carried.values()),
            collected=len(collected),
            body=Block(body, [start[place] for place in (*ends, *lists)]),
        )
        firsts = {start[place]: value for place, value in collected.items()}
        return loop, lambda expression: self._read(expression, firsts)

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
            return first if all(p.get(v) == place for v, p in own) else None
        found = {p.get(v) for v, p in zip(values[1:], self.places, strict=False)}
        end = found.pop()
        if found or end is None:
            return None
        inside = Value("x", values[1].dtype, values[1].shape, values[1].host)
        new = _Carried(values[0], end, inside)
        return self.carried.setdefault((values[0], end), new).inside

    def _number(self, numbers: list[int]) -> Expression | None:
        step = numbers[1] - numbers[0]
        if numbers != [numbers[0] + step * i for i in range(len(numbers))]:
            return None
        if not step:
            return Literal(numbers[0])
        self.counts = True
        by = self.index if step == 1 else BinOp("*", Literal(step), self.index)
        if not numbers[0]:
            return by
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
            if (place := self._row(expression)) is not None:
                lists.append(place)
                return expression
            return expression.rebuilt(look)

        try:
            for statement in rest:
                statement.rebuilt(look)
            for result in results:
                look(result)
        except LookupError:
            return None
        return list(dict.fromkeys(lists))

    def _row(self, expression: Expression) -> int | None:
        """The place whose values of all turns a call takes in their order."""
        if not isinstance(expression, Call) or expression.function not in _LIST:
            return None
        listed = expression.args[0]
        items = listed.items if isinstance(listed, ListOrTuple) else ()
        if len(items) != len(self.turns):
            return None
        first = items[0]
        place = self.places[0].get(first) if isinstance(first, Value) else None
        if place is None:
            return None
        own = zip(items, self.made, strict=True)
        return place if all(arg is made[place] for arg, made in own) else None

    def _read(self, expression: Expression, lists: dict[Value, Value]) -> Expression:
        if (place := self._row(expression)) is not None:
            held = lists[self.made[0][place]]
            return replace(expression, args=(held,))  # type: ignore[type-var]
        return expression.rebuilt(lambda child: self._read(child, lists))
