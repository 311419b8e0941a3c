"""Dead code elimination in blocks, branches and loops."""

from __future__ import annotations

from dataclasses import replace

from burnish.codegen.program.leaves import Expression, walk
from burnish.codegen.program.statements import Block, If, Loop, Statement


def pruned(block: Block) -> Block:
    """The block without what nothing reads, in inner blocks too."""
    return _pruned(block, set())


def _pruned(block: Block, needed: set[Expression]) -> Block:
    """`needed`: live values; the operands of kept statements are added."""
    for result in block.results:
        needed.update(walk(result))
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if needed.isdisjoint(statement.targets):
            continue
        if isinstance(statement, If):
            statement = _pruned_if(statement, needed)
        elif isinstance(statement, Loop):
            statement = _pruned_loop(statement, needed)
        for expression in statement.expressions():
            needed.update(walk(expression))
        kept.append(statement)
    return Block(kept[::-1], block.results)


def _pruned_if(statement: If, needed: set[Expression]) -> If:
    places = [i for i, target in enumerate(statement.targets) if target in needed]
    then, otherwise = (
        _pruned(Block(b.statements, [b.results[i] for i in places]), needed)
        for b in statement.blocks()
    )
    targets = tuple(statement.targets[i] for i in places)
    return replace(statement, targets=targets, then=then, otherwise=otherwise)


def _pruned_loop(loop: Loop, needed: set[Expression]) -> Loop:
    """Without lists that are never read, and without dead loop-carried values."""
    states, offset = len(loop.carried), 0 if loop.going is None else 1
    first, targets = offset + states, loop.targets
    lists = [i for i in range(loop.collected) if targets[states + i] in needed]
    kept = {i for i in range(states) if targets[i] in needed}
    while True:
        places = [*range(offset), *(offset + i for i in sorted(kept))]
        results = [loop.body.results[i] for i in (*places, *(first + i for i in lists))]
        read: set[Expression] = set()
        body = _pruned(Block(loop.body.statements, results), read)
        grown = kept | {i for i, value in enumerate(loop.carried) if value in read}
        if grown == kept:
            break
        kept = grown
    needed |= read
    chosen = sorted(kept)
    return replace(
        loop,
        targets=tuple(targets[i] for i in (*chosen, *(states + i for i in lists))),
        carried=tuple(loop.carried[i] for i in chosen),
        initial=tuple(loop.initial[i] for i in chosen),
        index=loop.index if loop.index in read else None,
        collected=len(lists),
        body=body,
    )
