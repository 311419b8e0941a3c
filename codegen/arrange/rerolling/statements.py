"""Find loops by tandem repeats: statements that repeat over the same modules.

A block that is called again and again, a cell over the elements of a sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from burnish.codegen.arrange.analysis.tandem_repeats import best_run
from burnish.codegen.arrange.rerolling.turns import loop_of, word
from burnish.codegen.program import Block, SelfAttr, Statement, every_expression

_SEVERAL = 4
"""Two iterations of fewer statements are as short written out as a loop."""


def rolled(block: Block) -> Block:
    """The block with loops where its statements repeat with modules of its own."""
    called = Counter(path for s in block.statements for path in _owned(s))
    if not any(times > 1 for times in called.values()):
        return block
    statements, results = list(block.statements), list(block.results)
    numbers: dict[str, int] = {}
    sequence = [numbers.setdefault(word(s), len(numbers)) for s in statements]
    weights = [len(list(_owned(s))) for s in statements]
    used = len(numbers)
    while run := best_run(sequence, weights):
        for start in range(run.start, run.start + run.rest + 1):
            end = start + run.period * run.count
            turns = [
                statements[i : i + run.period] for i in range(start, end, run.period)
            ]
            rest = [*statements[:start], *statements[end:]]
            made = loop_of(turns, rest, results) if _worth(turns) else None
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
