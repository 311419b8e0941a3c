"""Views, concatenation and splitting."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import (
    DEVICE,
    Inline,
    call,
    ints,
    known,
    layer,
    method,
    operand,
    operands,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.traits import (
    ELEMENTWISE,
    OWN_SHAPE,
    RESIZE,
    SAME_SHAPE,
    SELECTION,
    VIEW,
)
from burnish.codegen.ops.rule.words import WHOLE, filled, numbers, size
from burnish.codegen.ops.shapes import indexing, views
from burnish.codegen.program import (
    Attribute,
    BinOp,
    Call,
    Expression,
    Literal,
    Method,
    Shape,
    Slice,
    Subscript,
    Value,
    Weight,
)


@onnx_op("Reshape", since=5, traits=VIEW, shapes=views.reshape)
def reshape(
    data: Expression, shape: Expression, *, allowzero: int = 0, node: NodeContext
) -> Result:
    """A 0 keeps the input's size, unless `allowzero`."""
    sizes = ints(shape)
    whole = _before_split(data, node.shapes[0])
    if whole is not None:
        return whole
    if isinstance(sizes, list):
        if not allowzero:
            sizes = [size(data, i) if n == 0 else n for i, n in enumerate(sizes)]
        return method(data, "reshape", *sizes)
    parts = numbers(node, shape, "size")
    if allowzero:
        return method(data, "reshape", sizes)
    if parts is None:
        shape = Call("tuple", (sizes,))
        return call("reshape", tensor(data), shape=shape, keep_zeros=True)
    rank = len(parts) if data.rank is None else data.rank
    kept = [BinOp("or", n, size(data, i)) for i, n in enumerate(parts[:rank])]
    return method(data, "reshape", *kept, *parts[rank:])


def _before_split(data: Expression, shape: Shape | None) -> Expression | None:
    """The input of the Reshape that made `data`, if this one restores its shape."""
    if not (isinstance(data, Method) and data.name == "reshape" and shape):
        return None
    before = data.target
    same = before.rank == len(shape) and before.shape[-1] == shape[-1]  # type: ignore[index]
    return before if same and isinstance(shape[-1], int) else None


@onnx_op("Flatten", traits=VIEW, shapes=views.flatten)
def flatten(input_: Expression, *, axis: int = 1) -> Result:
    """Always a matrix: the axes before `axis` by the rest."""
    if axis < 0 and input_.rank is not None:
        axis += input_.rank
    if axis == 1 and (input_.rank or 0) > 1:
        return call("flatten", input_, 1)
    return call("flatten_to_matrix", input_, axis=axis)


@onnx_op("Transpose", traits=VIEW, shapes=views.transpose)
def transpose(data: Expression, *, perm: list[int] | None = None) -> Result:
    if isinstance(data, Method) and data.name == "transpose":
        first = [axis.value for axis in data.args if isinstance(axis, Literal)]
        if perm is not None and [first[axis] for axis in perm] == sorted(perm):
            return Inline(data.target)
    target = tensor(data)
    if perm is None or perm == sorted(perm)[::-1]:
        return target if perm == [0] else Attribute(target, "T")
    rank = len(perm)
    if perm == [*range(rank - 2), rank - 1, rank - 2]:
        return Attribute(target, "mT")
    return (
        target
        if perm == sorted(perm)
        else Method(target, "transpose", tuple(map(Literal, perm)))
    )


@onnx_op("Squeeze")
def squeeze_axes(data: Expression, *, axes: list[int] | None = None) -> Result:
    return method(data, "squeeze", *_axes(axes))


@onnx_op("Squeeze", since=13, traits=VIEW, shapes=views.squeeze)
def squeeze(data: Expression, axes: Expression | None = None) -> Result:
    chosen = None if axes is None else ints(axes)
    if isinstance(data, Subscript) and isinstance(data.target, Value):
        added = [i for i, key in enumerate(data.keys) if key is not WHOLE]
        if chosen == added and all(map(_is_new, (data.keys[i] for i in added))):
            return data.target
    return method(data, "squeeze", *_axes(chosen))


def _is_new(key: Expression) -> bool:
    return isinstance(key, Literal) and key.value is None


@onnx_op("Unsqueeze")
def unsqueeze_axes(data: Expression, *, axes: list[int]) -> Result:
    return method(data, "unsqueeze", *_axes(axes))


@onnx_op("Unsqueeze", since=13, traits=VIEW, shapes=views.unsqueeze)
def unsqueeze(data: Expression, axes: Expression) -> Result:
    return method(data, "unsqueeze", *_axes(ints(axes)))


def _axes(axes: Any) -> list[Any]:
    if axes is None:
        return []
    if isinstance(axes, Expression):
        return [Call("tuple", (axes,))]
    return [axes[0] if len(axes) == 1 else tuple(axes)]


@onnx_op("Expand", traits=OWN_SHAPE | RESIZE | SELECTION, shapes=indexing.expand)
def expand(input_: Expression, shape: Expression) -> Result:
    number, sizes = known(input_), shape_option(shape)
    learned = isinstance(input_, Weight) and (input_.trained or input_.persistent)
    if number is None or number.size != 1 or (number.ndim and learned):
        return call("expand", input_, shape=sizes)
    if not isinstance(sizes, tuple) or not sizes or number.ndim > len(sizes):
        return call("expand", input_, shape=sizes)
    return filled(sizes, number)


def shape_option(shape: Expression) -> Any:
    """A shape as a tuple of numbers, or an expression for one."""
    sizes = ints(shape)
    return sizes if isinstance(sizes, Expression) else tuple(sizes)


@onnx_op("Concat", since=4, traits=OWN_SHAPE | RESIZE, shapes=views.concat)
def concat(*inputs: Expression, axis: int) -> Result:
    return call("concat", list(operands(*inputs)), axis=_last(inputs[0], axis))


def _last(x: Expression, axis: int) -> int:
    return -1 if x.rank is not None and x.rank > 1 and axis == x.rank - 1 else axis


@onnx_op("Split", since=2)
def split_to(
    input_: Expression,
    *,
    axis: int = 0,
    split_: list[int] | None = None,
    node: NodeContext,
) -> Result:
    return _split(input_, axis, split_, len(node.outputs))


@onnx_op("Split", since=13, traits=OWN_SHAPE | RESIZE | SELECTION, shapes=views.split)
def split(
    input_: Expression,
    split: Expression | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    node: NodeContext,
) -> Result:
    sizes = None if split is None else shape_option(split)
    return _split(input_, axis, sizes, len(node.outputs))


def _split(x: Expression, axis: int, sizes: Any, count: int) -> Result:
    if sizes is None or _in_equal_parts(x, axis, sizes):
        parts = call("split", x, num=count, axis=axis)
    else:
        parts = call("split", x, sizes=sizes, axis=axis)
    return Subscript(parts, (Literal(0),)) if count == 1 else parts


def _in_equal_parts(x: Expression, axis: int, sizes: Any) -> bool:
    """Whether the sizes are what dividing the axis gives."""
    listed = sizes.value if isinstance(sizes, Literal) else sizes
    if not isinstance(listed, list | tuple) or x.shape is None:
        return False
    plain = [s.value if isinstance(s, Literal) else s for s in listed]
    if len(set(map(repr, plain))) != 1 or type(plain[0]) is not int or not plain[0]:
        return False
    return x.shape[axis] == plain[0] * len(plain)


@onnx_op("Tile", since=6, traits=OWN_SHAPE | RESIZE | SELECTION, shapes=indexing.tile)
def tile(input_: Expression, repeats: Expression) -> Result:
    return call("tile", input_, repeats=shape_option(repeats))


@onnx_op("Identity", traits=ELEMENTWISE | SELECTION)
def identity(input_: Expression) -> Result:
    return input_


@onnx_op("Shape", traits=OWN_SHAPE)
def shape(data: Expression, *, start: int = 0, end: int | None = None) -> Result:
    sizes: Expression = Attribute(operand(data), "shape")
    if start or end is not None:
        part = slice_of(start, end)
        sizes = Subscript(sizes, (part,))
    return made_of(sizes)


def slice_of(start: int, end: int | None) -> Expression:
    stop = None if end is None else Literal(end)
    return Slice(Literal(start) if start else None, stop)


def made_of(sizes: Expression) -> Expression:
    """Python integers as a tensor on the module's device."""
    options = (("dtype", Literal("int64")), ("device", DEVICE))
    return Call("Tensor", (sizes,), options)


@onnx_op("Size", traits=OWN_SHAPE)
def size_(data: Expression) -> Result:
    return made_of(Attribute(operand(data), "size"))


@onnx_op("DepthToSpace", traits=OWN_SHAPE | SELECTION)
def depth_to_space(input_: Expression, *, blocksize: int, mode: str = "DCR") -> Result:
    if mode == "CRD":
        return layer("PixelShuffle", (blocksize,), {}, {}, input_)
    return call("depth_to_space", input_, blocksize=blocksize, mode=mode)


@onnx_op("SpaceToDepth", traits=OWN_SHAPE | SELECTION)
def space_to_depth(input_: Expression, *, blocksize: int, mode: str = "DCR") -> Result:
    if mode == "DCR":
        return call("space_to_depth", input_, blocksize=blocksize)
    b, (n, c, h, w) = Literal(blocksize), (size(input_, i) for i in range(4))
    high, wide = (BinOp("//", length, b) for length in (h, w))
    blocks = method(input_, "reshape", n, c, high, b, wide, b)
    moved = Method(blocks, "transpose", tuple(map(Literal, (0, 1, 3, 5, 2, 4))))
    return Method(moved, "reshape", (n, Literal(-1), high, wide))


@onnx_op("PixelUnshuffle", domain="burnish", traits=OWN_SHAPE)
def pixel_unshuffle(x: Expression, *, blocksize: int) -> Result:
    return layer("PixelUnshuffle", (blocksize,), {}, {}, x)


@onnx_op("ChannelShuffle", domain="burnish", traits=SAME_SHAPE)
def channel_shuffle(x: Expression, *, groups: int) -> Result:
    return layer("ChannelShuffle", (groups,), {}, {}, x)


@onnx_op("Roll", domain="burnish", traits=SAME_SHAPE)
def roll(x: Expression, *, shifts: list[int], axes: list[int]) -> Result:
    one = len(axes) == 1
    shift, axis = (n[0] if one else tuple(n) for n in (shifts, axes))
    return method(x, "roll", shift, axis)
