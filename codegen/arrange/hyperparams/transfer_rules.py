"""Shape transfer functions: the sizes of an operator's result from its operands'.

Operands of a model that nothing can run fit no operator: their result is unknown.
"""

from __future__ import annotations

from burnish.codegen.arrange.hyperparams.size_classes import Dims, Node, Ties
from burnish.codegen.program import Expression, Literal, Method
from burnish.codegen.symbolic import transfer


def split(ties: Ties, whole: Dims | None, parts: list[Dims | None]) -> None:
    """Shape transfer of split: the parts of one axis add up, other axes are equal."""
    for part in parts:
        ties.kept(part, whole)
    first = parts[0]
    shapes = [part for part in parts if part and whole and len(part) == len(whole)]
    if not whole or not first or len(shapes) < len(parts):
        return
    for axis, size in enumerate(whole):
        sizes = [shape[axis] for shape in shapes]
        if len({ties.of(each) for each in sizes}) == 1 and ties.of(size) != ties.of(
            sizes[0]
        ):
            for each in sizes[1:]:
                ties.same(sizes[0], each)
            ties.product(size, sizes[0], times=len(parts))


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


def unsqueezed(ties: Ties, before: Dims | None, axes: object) -> Dims | None:
    """Insert axes of length 1, counted in the result's axes."""
    places = [axes] if isinstance(axes, int) else axes
    if before is None or not isinstance(places, tuple | list):
        return None
    return transfer.unsqueezed(before, places, lambda: ties.new(1))


def reduced(call: Method, before: Dims | None, own: Dims | None) -> Dims | None:
    """Without the axes that are summed up."""
    axes = call.args[0] if call.args else dict(call.options).get("axis")
    if not before or not isinstance(axes, Literal):
        return None
    places = (axes.value,) if isinstance(axes.value, int) else axes.value
    if not isinstance(places, tuple):
        return None
    if own is not None and len(own) == len(before):
        return transfer.replaced(before, places, own.__getitem__)
    return transfer.squeezed(before, places)


def concat(ties: Ties, shapes: list[Dims | None], own: Dims | None) -> Dims | None:
    """One axis is what all have together; where they are equal, so many times."""
    for shape in shapes[1:]:
        ties.kept(shapes[0], shape)
    known = [shape for shape in shapes if shape and own and len(shape) == len(own)]
    if not own or len(known) < len(shapes):
        return None
    for axis, size in enumerate(own):
        parts = [shape[axis] for shape in known]
        if ties.of(size) == ties.of(parts[0]):
            ties.agree(size, parts[0])
        elif len({ties.of(part) for part in parts}) == 1:
            ties.product(size, parts[0], times=len(parts))
    return own


def conv(
    ties: Ties, x: Dims | None, weight: Dims | None, bias: Dims | None = None
) -> Dims | None:
    """x (batch, channels, ...) and weight (channels, channels a group, ...)."""
    if not x or not weight or min(len(x), len(weight)) < 2:
        return None
    if bias:
        ties.same(weight[0], bias[0])
    taken, channels = ties.of(x[1]), ties.of(weight[1])
    if taken and channels and taken % channels == 0:
        ties.product(x[1], weight[1], times=taken // channels)
    return [x[0], weight[0], *(ties.new() for _ in x[2:])]


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
    """Shape transfer of broadcasting."""
    known = [shape for shape in shapes if shape]
    if not known or len(known) < len(shapes):
        return known[0] if len(known) == 1 else None

    def join(sizes: Dims) -> Node:
        wide = [size for size in sizes if ties.of(size) != 1]
        for size in wide[1:]:
            ties.same(wide[0], size)
        return (wide or sizes)[0]

    return transfer.broadcast(known, join)
