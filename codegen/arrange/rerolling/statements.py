"""Find loops by tandem repeats: statements that repeat, in turns that are alike.

A block that is called again and again, a cell over the elements of a sequence, a
recurrence that is computed from one element after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from burnish.codegen.arrange.analysis.tandem_repeats import best_run
from burnish.codegen.arrange.rerolling.turns import loop_of, word
from burnish.codegen.program import (
    Assign,
    Block,
    Literal,
    Loop,
    SelfAttr,
    Statement,
    Subscript,
    every_expression,
)

_SEVERAL = 4
"""Two iterations of fewer statements are as short written out as a loop."""
_STEPS = 4
"""Fewer steps over the elements of a sequence are written out."""


def rolled(block: Block) -> Block:
    """The block with loops where modules of its own or steps of a recurrence repeat."""
    called = Counter(path for s in block.statements for path in _owned(s))
    if any(times > 1 for times in called.values()):
        block = _with_loops(block, lambda s: len(list(_owned(s))), _is_shorter)
    reads = Counter(word(s) for s in block.statements if _is_an_element_read(s))
    if any(times >= _STEPS for times in reads.values()):
        block = _with_loops(block, _is_an_element_read, _is_a_recurrence)
    return block


def _with_loops(
    block: Block, weight: Callable[[Statement], int], worth: Callable[[Loop], bool]
) -> Block:
    """The block with the loops of its runs, those that save most weight first."""
    statements, results = list(block.statements), list(block.results)
    numbers: dict[str, int] = {}
    sequence = [numbers.setdefault(word(s), len(numbers)) for s in statements]
    weights = list(map(weight, statements))
    used = len(numbers)
    # an element alone is no step, however often a step reads one
    little = {numbers[word(s)] for s in statements if _is_an_element(s)}
    while run := best_run(sequence, weights, little):
        for start in range(run.start, run.start + run.rest + 1):
            end = start + run.period * run.count
            turns = [
                statements[i : i + run.period] for i in range(start, end, run.period)
            ]
            rest = [*statements[:start], *statements[end:]]
            made = loop_of(turns, rest, results)
            if made is not None and worth(made[0]):
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


def _is_an_element(statement: Statement) -> bool:
    """Whether it is an element, or a stretch, of a sequence and nothing more."""
    return isinstance(statement, Assign) and isinstance(statement.expression, Subscript)


def _is_an_element_read(statement: Statement) -> bool:
    """Whether it reads an element, or a stretch, of a sequence by number."""
    return any(
        isinstance(expression, Subscript)
        and any(
            isinstance(part, Literal) and type(part.value) is int
            for key in expression.keys
            for part in (key, *key.children())
        )
        for expression in every_expression(statement)
    )


def _is_shorter(loop: Loop) -> bool:
    """Whether a loop is shorter: three iterations, or two of several statements."""
    assert isinstance(loop.count, Literal)
    return loop.count.value > 2 or len(loop.body.statements) >= _SEVERAL


def _is_a_recurrence(loop: Loop) -> bool:
    """Whether each of several iterations reads the next element, and the last state."""
    assert isinstance(loop.count, Literal)
    counts = loop.index is not None and bool(loop.carried)
    return counts and loop.count.value >= _STEPS
