"""Jump threading: an If whose condition an earlier If decides moves into its branches.

TorchScript writes an early return as a flag beside the result, and asks the flag later.
An If inside a branch of one with the same condition is the branch that is taken. The
numbers stay; no statement is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

from burnish.codegen.arrange.analysis.structural_hash import Numbers, expression_hash
from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    Expression,
    Flow,
    If,
    Literal,
    Loop,
    Statement,
    Value,
    exchanged,
    operands,
)


def threaded(block: Block) -> Block:
    """The block with its branches threaded, those inside of branches and loops too."""
    return _threaded(_decided(block, {}, {}, {}))


# --- conditions that hold already ---


def _decided(
    block: Block,
    made: Mapping[Value, Expression],
    held: Mapping[object, bool],
    numbers: Numbers,
) -> Block:
    """The block without Ifs whose condition an If around them has decided.

    made: host expressions of values around it. held: what conditions are, by hash.
    numbers: of the values that conditions read.
    """
    made, results = dict(made), list(block.results)
    statements: list[Statement] = []
    known: dict[Value, Expression] = {}
    change = exchanged(known)
    for statement in block.statements:
        statement = statement.rebuilt(change)
        if isinstance(statement, Assign) and statement.targets[0].host:
            made[statement.targets[0]] = statement.expression
        if isinstance(statement, Loop):
            body = _decided(statement.body, made, held, numbers)
            statement = replace(statement, body=body)
        if not isinstance(statement, If):
            statements.append(statement)
            continue
        key = expression_hash(_spelled(statement.condition, made), numbers)
        on_host = getattr(statement.condition, "host", False)
        if on_host and key in held:
            side = statement.blocks()[not held[key]]
            taken = _decided(side, made, held, numbers)
            statements += taken.statements
            known |= zip(statement.targets, taken.results, strict=True)
            continue
        sides = [
            _decided(side, made, {**held, key: answer} if on_host else held, numbers)
            for side, answer in zip(statement.blocks(), (True, False), strict=True)
        ]
        statements.append(replace(statement, then=sides[0], otherwise=sides[1]))
    return Block(statements, [change(result) for result in results])


def _spelled(expression: Expression, made: Mapping[Value, Expression]) -> Expression:
    """The expression in terms of values that are no host values."""
    if isinstance(expression, Value) and expression in made:
        return _spelled(made[expression], made)
    return expression.rebuilt(lambda child: _spelled(child, made))


# --- flags ---


def _threaded(block: Block) -> Block:
    statements: list[Statement] = []
    flow = cache(partial(Flow, block))  # once, and only where two Ifs meet
    for statement in block.statements:
        before = statements[-1] if statements else None
        made = None
        if isinstance(statement, If):
            sides = map(_threaded, statement.blocks())
            statement = replace(statement, then=next(sides), otherwise=next(sides))
            if isinstance(before, If):
                made = _one(before, statement, flow())
        elif isinstance(statement, Loop):
            statement = replace(statement, body=_threaded(statement.body))
        if made is None:
            statements.append(statement)
        else:
            statements[-1] = made
    return Block(statements, block.results)


def _one(first: If, second: If, flow: Flow) -> If | None:
    """Two Ifs as one, where the first one's branches say what the second one asks."""
    inside = {flow.maker[t] for t in second.targets}  # the second, as it was before
    if any(flow.is_read_outside(target, inside) for target in first.targets):
        return None
    answers = _answers(first, second)
    if None in answers or not any(isinstance(a, Literal) for a in answers):
        return None
    taken = [
        side
        for answer in answers
        for side, when in zip(second.blocks(), (True, False), strict=True)
        if not isinstance(answer, Literal) or bool(answer.value) == when
    ]
    if any(side.statements and taken.count(side) > 1 for side in taken):
        return None
    sides = [
        _behind(side, answer, first, second)
        for side, answer in zip(first.blocks(), answers, strict=True)
        if answer is not None
    ]
    return replace(second, condition=first.condition, then=sides[0], otherwise=sides[1])


def _answers(first: If, second: If) -> list[Expression | None]:
    """What each branch of the first If says to the second one's condition."""
    flag = second.condition
    if flag is first.condition and not any(s.statements for s in second.blocks()):
        return [Literal(True), Literal(False)]
    if not isinstance(flag, Value) or flag not in first.targets:
        return [None]
    if any(flag in [*operands(s), *s.results] for s in second.blocks()):
        return [None]
    place = first.targets.index(flag)
    return [_answer(side.results[place]) for side in first.blocks()]


def _answer(result: Expression) -> Expression | None:
    """A branch's flag as a condition of Python: a literal, or of the host."""
    if isinstance(result, Call) and result.function == "Tensor" and result.args:
        result = result.args[0]
    is_known = isinstance(result, Literal) or getattr(result, "host", False)
    return result if is_known else None


def _behind(side: Block, answer: Expression, first: If, second: If) -> Block:
    """A branch of the first If with what the second one does behind it."""
    change = exchanged(dict(zip(first.targets, side.results, strict=True)))
    then, otherwise = (inner.rebuilt(change) for inner in second.blocks())
    if isinstance(answer, Literal):
        taken = then if answer.value else otherwise
        return _threaded(Block([*side.statements, *taken.statements], taken.results))
    targets = tuple(replace(target) for target in second.targets)
    inner = replace(
        second, targets=targets, condition=answer, then=then, otherwise=otherwise
    )
    return _threaded(Block([*side.statements, inner], list(targets)))
