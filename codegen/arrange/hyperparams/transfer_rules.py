"""Shape transfer functions: the sizes of an operator's result from its operands'.

Operands of a model that nothing can run fit no operator: their result is unknown.
"""

from __future__ import annotations

from burnish.codegen.arrange.hyperparams.size_classes import Dims, Node, Ties
from burnish.codegen.program import Expression, Literal, Method
from burnish.codegen.symbolic import transfer


def split(
    ties: Ties, whole: Dims | None, axis: int | None, parts: list[Dims | None]
) -> None:
    """Results of one call have the axes of its argument; along one they add up."""
    for part in parts:
        ties.kept(part, whole)
    known = [part for part in parts if part and whole and len(part) == len(whole)]
    if whole is None or axis is None or len(known) < len(parts):
        return
    if -len(whole) <= axis < len(whole):
        transfer.split(whole, axis, [part[axis] for part in known], ties)


_FEW = (2, 3)
"""How many of queries, keys and values one layer makes; in a split, they come first."""


def reshaped(ties: Ties, before: Dims, after: Dims) -> None:
    """Shape transfer of reshape: equal ends, between them one axis merged or split."""
    before, after = list(before), list(after)
    while before and after and ties.of(before[0]) == 1 != ties.of(after[0]):
        before = before[1:]
    while before and after and ties.agree(before[0], after[0]):
        before, after = before[1:], after[1:]
    while before and after and ties.agree(before[-1], after[-1]):
        before, after = before[:-1], after[:-1]
    for whole, parts, is_cut in ((before, after, True), (after, before, False)):
        if len(whole) == 1 and len(parts) > 1:
            parts = _factors(ties, whole[0], parts)
            at = _counting(ties, parts)
            times = ties.of(parts[at]) if len(parts) == 3 else None
            if times is not None:
                parts = [*parts[:at], *parts[at + 1 :]]
            ties.product(whole[0], *parts, times=times or 1, is_cut=is_cut)
            return
    if len(after) == len(before) + 1 > 2:
        ties.product(before[-1], *after[-2:], is_cut=True)


def _counting(ties: Ties, parts: Dims) -> int:
    """Which of three parts counts equal ones: queries and keys may be the second."""
    first, second = (ties.of(part) for part in parts[:2])
    return int(second == 3 != first or (second == 2 and first not in _FEW))


def _factors(ties: Ties, whole: Node, parts: Dims) -> Dims:
    """The last part of a split; the earlier ones have no size of their own."""
    number = 1
    for place in range(len(parts) - 1, 0, -1):
        number *= ties.of(parts[place]) or 0
        if number == ties.of(whole) and place < len(parts) - 1:
            return parts[place:]
    return parts


def several(axes: object) -> tuple[int, ...] | None:
    """Axes that are written as a number or as several; None where they are not."""
    axes = (axes,) if isinstance(axes, int) else axes
    return tuple(axes) if isinstance(axes, tuple | list) else None


def reduced(call: Method, before: Dims | None, own: Dims | None) -> Dims | None:
    """Without the axes that are summed up."""
    axes = call.args[0] if call.args else dict(call.options).get("axis")
    places = several(axes.value) if isinstance(axes, Literal) else None
    if not before or places is None:
        return None
    if own is not None and len(own) == len(before):
        return transfer.replaced(before, places, own.__getitem__)
    return transfer.squeezed(before, places)


def conv(
    ties: Ties,
    groups: int | None,
    x: Dims | None,
    weight: Dims | None,
    bias: Dims | None = None,
) -> Dims | None:
    """Channels of a convolution; what windows make of other axes is not known."""
    if not x or not weight or groups is None:
        return None
    if bias:
        ties.same(weight[0], bias[0])
    return transfer.conv(x, weight, groups, [ties.new() for _ in x[2:]], ties)


def attention(
    ties: Ties, q: Dims | None, k: Dims | None, v: Dims | None, scores: Dims | None
) -> Dims | None:
    """Heads are equal, unless several of the queries share keys and values."""
    if not q or not k or not v:
        return None
    for one, other in ((q, k), (k, v)) if min(map(len, (q, k, v))) > 3 else ():
        ties.agree(one[-3], other[-3])
    if scores:
        ties.alike(scores[:-2], q[:-2])
    return transfer.attention(q, k, v, ties)


def rotary(
    ties: Ties, x: Dims | None, tables: list[Dims | None], times: int
) -> Dims | None:
    """Whole heads that are rotated have `times` as many columns as the tables."""
    for table in tables:
        columns = ties.of(table[-1]) if table else None
        if not x or not table or columns is None:
            continue
        if times == 1:
            ties.agree(x[-1], table[-1])
        elif ties.of(x[-1]) == times * columns:
            ties.product(x[-1], table[-1], times=times)
    return x


def moved(ties: Ties, kind: str, args: tuple[Expression, ...], x: Dims) -> Dims | None:
    """Shape transfer of layers without weights: pools, Permute, and plain Flatten."""
    if kind == "Permute":
        order = args[0].value if args and isinstance(args[0], Literal) else None
        return transfer.transposed(x, order) if isinstance(order, tuple) else None
    if kind == "Flatten":
        alone = all(ties.of(size) == 1 for size in x[2:])
        return None if args or len(x) < 2 else [x[0], x[1] if alone else ties.new()]
    return [*x[:2], *(ties.new() for _ in x[2:])]


def broadcast(ties: Ties, shapes: list[Dims | None]) -> Dims | None:
    """Shape transfer of broadcasting; one shape that is known may be all."""
    known = [shape for shape in shapes if shape]
    if len(known) < len(shapes):
        return known[0] if len(known) == 1 else None
    return transfer.broadcast(known, ties.spread)
