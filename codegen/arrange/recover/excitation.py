"""Squeeze-and-excitation: a product of a value with a gate of its pooled channels."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.codegen.arrange.recover.segments import (
    dense,
    expression,
    layers_of,
    on_host,
)
from burnish.codegen.ops import Trait, functions
from burnish.codegen.program import BinOp, Flow, Method, Statement, Value, callee

EXCITE = "SqueezeExcite"
_POOLS = functions(Trait.REDUCTION) | {
    "ops.global_avg_pool",
    "ops.global_max_pool",
    "ops.adaptive_avg_pool",
    "ops.avg_pool",
}
_EXCITES = ("Conv", "Linear", "BatchNorm", "Hardsigmoid", "PReLU")
_EXCITING = 2
"""Layers of a squeeze-and-excitation: one, or a narrow one and a wide one."""
_LONGEST = 24
"""Statements of a gate; a longer one is no squeeze-and-excitation."""


def excitations(statements: Sequence[Statement], flow: Flow) -> list[list[Statement]]:
    """The blocks of squeeze-and-excitation among statements: x * gate(pool(x))."""
    inside = set(statements)
    found = [block for s in statements if (block := _excitation(s, inside, flow))]
    return [[s for s in statements if s in block] for block in found]


def _excitation(
    product: Statement, inside: set[Statement], flow: Flow
) -> set[Statement]:
    """The block whose last statement is a product; empty where that weighs no channels.

    Its gate is computed by one or two layers from the other factor, pooled,
    and by nothing else; nothing else reads it.
    """
    made = expression(product)
    if not isinstance(made, BinOp) or made.operator != "*":
        return set()
    for x, gate in ((made.left, made.right), (made.right, made.left)):
        if not isinstance(x, Value) or not isinstance(gate, Value) or x is gate:
            continue
        cone = _between(x, gate, inside, flow)
        if not 1 <= sum(map(dense, cone)) <= _EXCITING:
            continue
        if not all(e.kind.startswith(_EXCITES) for s in cone for e in layers_of(s)):
            continue
        first = [s for s in cone if x in flow.reads[s] and not on_host(s)]
        own = {product, *cone}
        read = {reader for s in cone for reader in flow.readers_of(s)}
        if all(map(_pools, first)) and read <= own:
            return own
    return set()


def _between(
    x: Value, end: Value, inside: set[Statement], flow: Flow
) -> set[Statement]:
    """The statements that compute a value from another one alone; empty for others."""
    cone: set[Statement] = set()
    waiting = [end]
    while waiting:
        value = waiting.pop()
        maker = flow.maker.get(value)
        if value is x or (value.host and maker is None):
            continue
        if maker is None or maker not in inside or len(cone) > _LONGEST:
            return set()
        if maker not in cone:
            cone.add(maker)
            waiting += flow.reads[maker]
    return cone


def _pools(statement: Statement) -> bool:
    """Whether it reduces a value over its places: a mean, a global pool."""
    made = expression(statement)
    if isinstance(made, Method):
        return made.name == "mean"
    return callee(made) in _POOLS
