"""Rewrite nearest-neighbour upsampling by Expand and Reshape as one Resize.

Keras' UpSampling comes as an axis of length 1 behind the one that grows, a Tile of it
and a Reshape of both into one, for each axis that grows, with Transposes of the
channels between. Nearest neighbours by a whole factor are the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.shapes.dims import declared, known
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.layout.channel_axes import inverse
from burnish.codegen.symbolic.sizes import Size, product

_NEAREST = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}


@dataclass
class _Repeat:
    """`x` with each element of an axis `times` times, its axes then in `order`."""

    x: ir.Value
    axis: int
    times: int
    order: list[int]


def repeat_elements(model: ir.Model, account: Account) -> bool:
    """Write a Resize for every Tile that repeats elements."""
    rewrites = {"elements repeated along an axis": _rewritten}
    return g.rewrite_nodes(model, account, rewrites, "Reshape")


def _rewritten(model: ir.Model, node: ir.Node) -> bool:
    found = _repeat(node)
    repeat = None if found is None else _outside(found)
    if repeat is None or repeat.axis < 2:  # heads are repeated otherwise
        return False
    _write(model, node, repeat)
    return True


def _repeat(merge: ir.Node) -> _Repeat | None:
    """The repetition that a Reshape ends by merging a repeated axis, else None."""
    turn = _maker(merge, "Transpose")
    tile = _maker(turn or merge, "Tile")
    grow = None if tile is None else _maker(tile, "Unsqueeze")
    if tile is None or grow is None:
        return None
    x = grow.inputs[0]
    axes, times = g.integers(grow.inputs[1]), g.integers(tile.inputs[1])
    if x is None or x.shape is None or x.dtype is None or axes is None or times is None:
        return None
    if len(axes) != 1 or not x.dtype.is_floating_point():
        return None
    rank = len(x.shape) + 1
    new = axes[0] % rank
    if len(times) != rank or any(n != 1 for i, n in enumerate(times) if i != new):
        return None
    order = [*range(rank)] if turn is None else g.order_of(turn, rank)
    if order is None:
        return None
    place = order.index(new)
    if place == 0:
        return None
    partner = order[place - 1]
    wanted = _merged(tile, order, place)
    if wanted is None or declared(merge.outputs[0]) != wanted:
        return None
    kept = [axis - (axis > new) for axis in order if axis != new]
    return _Repeat(x, partner - (partner > new), times[new], kept)


def _maker(node: ir.Node, kind: str) -> ir.Node | None:
    """The node of a kind that makes a node's first input for it alone."""
    maker = g.made_for(node, node.inputs[0])
    return maker if maker and maker.op_type == kind and not maker.domain else None


def _merged(tile: ir.Node, order: list[int], place: int) -> list[Size] | None:
    """The shape behind the Reshape, if it puts axis `place` into the one before."""
    sizes = known(declared(tile.outputs[0]))
    if sizes is None:
        return None
    permuted = [sizes[axis] for axis in order]
    joint = product(permuted[place - 1 : place + 1])
    return [*permuted[: place - 1], joint, *permuted[place + 1 :]]


def _outside(repeat: _Repeat) -> _Repeat:
    """The same with Transposes of `x` behind the repetition."""
    maker = repeat.x.producer()
    while maker is not None and maker.op_type == "Transpose" and not maker.domain:
        perm, x = g.order_of(maker, len(repeat.order)), maker.inputs[0]
        if perm is None or x is None:
            break
        order = [perm[axis] for axis in repeat.order]
        repeat = _Repeat(x, perm[repeat.axis], repeat.times, order)
        maker = x.producer()
    return repeat


def _write(model: ir.Model, merge: ir.Node, repeat: _Repeat) -> None:
    source, rank = repeat.x, len(repeat.order)
    scales = np.ones(rank, np.float32)
    scales[repeat.axis] = repeat.times
    before = source.producer()
    had = None if before is None else _scales(before)
    if before is not None and had is not None and len(source.uses()) == 1:
        scales = scales * had
        source = before.inputs[0] or source
    held = g.new_constant(model, f"{merge.outputs[0].name}_scales", scales)
    made = ir.node("Resize", [source, None, held], _NEAREST)
    turn = ir.Node("", "Transpose", made.outputs, [ir.AttrInt64s("perm", repeat.order)])
    old, end = merge.outputs[0], turn.outputs[0]
    end.type = made.outputs[0].type = old.type
    end.shape = old.shape
    if old.shape is not None:
        dims = list(old.shape)
        back = [dims[place] for place in inverse(repeat.order)]
        made.outputs[0].shape = ir.Shape(back)
    g.substitute(merge, [g.named_like(node, merge) for node in (made, turn)])


def _scales(node: ir.Node) -> np.ndarray | None:
    """The factors of a Resize that repeats elements too."""
    if node.op_type != "Resize" or node.domain or len(node.inputs) != 3:
        return None
    if any(g.attribute(node, name, "") != value for name, value in _NEAREST.items()):
        return None
    if any(name not in _NEAREST for name in node.attributes):
        return None
    tensor = g.constant(node.inputs[2])
    return None if tensor is None else tensor.numpy()
