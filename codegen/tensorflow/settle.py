"""Assign operators without weights to the scope of their neighbours.

Keras counts its activations and sums through the whole model ("re_lu_7"), so they stand
beside the blocks that they are part of; and what a converter makes it only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import TypeVar

import onnx_ir as ir

from burnish.codegen.ops import Trait, having
from burnish.codegen.program import Scope

_T = TypeVar("_T")
_ACTIVATIONS = having(Trait.ACTIVATION)
_Scopes = dict[ir.Node, Scope]


def common(paths: Sequence[tuple[_T, ...]]) -> tuple[_T, ...]:
    """The longest common prefix of the paths."""
    columns = list(zip(*paths, strict=False))
    differ = (i for i, column in enumerate(columns) if len(set(column)) > 1)
    return paths[0][: next(differ, len(columns))] if paths else ()


def fill(nodes: Iterable[ir.Node], scopes: _Scopes) -> None:
    """Nodes without a scope are in the innermost one around all that they touch."""
    lists = _lists(scopes)
    for node in nodes:
        if node not in scopes:
            cluster, around = _cluster(node, scopes, lambda n: n not in scopes)
            scopes.update(dict.fromkeys(cluster, _module(common(around), lists)))


def settle(nodes: Sequence[ir.Node], scopes: _Scopes, blocks: Set[Scope]) -> None:
    """Bring nodes without weights into the modules around them.

    Those beside a block join it too: what is done to its input for its own use, and
    what adds the input to its result.
    """
    lists = _lists(scopes)
    free = set(nodes)

    def alike(node: ir.Node) -> Callable[[ir.Node], bool]:
        return lambda other: other in free and scopes[other] == scopes[node]

    for node in nodes:
        if node in free:
            own = scopes[node]
            cluster, around = _cluster(node, scopes, alike(node))
            free.difference_update(cluster)
            scope = _module(common(around), lists)
            if scope[: len(own)] == own:
                scopes.update(dict.fromkeys(cluster, scope))
    joined: set[ir.Node] = set()
    for node in nodes:
        block = _beside(node, scopes, blocks, joined)
        if block is not None:
            scopes[node] = block
            joined.add(node)


def _lists(scopes: _Scopes) -> set[Scope]:
    """The scopes that hold numbered modules alone."""
    return {
        scope[:depth]
        for scope in scopes.values()
        for depth in range(1, len(scope))
        if scope[depth].name.isdecimal()
    }


def _module(scope: Scope, lists: Set[Scope]) -> Scope:
    """The scope, or the one around it where it is a list."""
    while scope in lists:
        scope = scope[:-1]
    return scope


def _cluster(
    start: ir.Node, scopes: _Scopes, belongs: Callable[[ir.Node], bool]
) -> tuple[set[ir.Node], list[Scope]]:
    """The nodes around `start` that belong with it, and the scopes around them."""
    cluster, around, waiting = {start}, list[Scope](), [start]
    while waiting:
        for other in _neighbours(waiting.pop()):
            if other is None:
                around.append(())
            elif other in cluster:
                continue
            elif belongs(other):
                cluster.add(other)
                waiting.append(other)
            else:
                around.append(scopes[other])
    return cluster, around


def _neighbours(node: ir.Node) -> Iterator[ir.Node | None]:
    """Producers of a node's inputs, and its outputs' readers; None for the model."""
    for value in _read(node):
        yield value.producer()
    for value in node.outputs:
        yield from (user for user, _ in value.uses())
        if value.is_graph_output():
            yield None


def _read(node: ir.Node) -> list[ir.Value]:
    return [v for v in node.inputs if v is not None and not v.is_initializer()]


def _beside(
    node: ir.Node, scopes: _Scopes, blocks: Set[Scope], joined: Set[ir.Node]
) -> Scope | None:
    """The block that a node outside of all blocks is a part of, if it is."""
    own, read = scopes[node], _read(node)
    makers = [value.producer() for value in read]
    users = [user for value in node.outputs for user, _ in value.uses()]
    if any(value.is_graph_output() for value in node.outputs) or not read:
        return None
    first = makers[0]
    if node.op_type in _ACTIVATIONS and first in joined and len(read[0].uses()) == 1:
        return None if first is None else scopes[first]
    for other in (*makers, *users):
        block = _block(scopes[other], blocks) if other is not None else None
        if block is None or block[: len(own)] != own or len(block) <= len(own):
            continue

        def inside(other: ir.Node | None, block: Scope = block) -> bool:
            return other is not None and scopes[other][: len(block)] == block

        given = [v for v in read if not inside(v.producer())]
        known = all(
            any(user is not node and inside(user) for user, _ in value.uses())
            for value in given
        )
        closes = len(given) < len(read) and len(read) > 1
        opens = bool(users) and all(map(inside, users))
        if known and (closes or opens):
            return block
    return None


def _block(scope: Scope, blocks: Set[Scope]) -> Scope | None:
    ends = (scope[:depth] for depth in range(len(scope), 0, -1))
    return next((end for end in ends if end in blocks), None)
