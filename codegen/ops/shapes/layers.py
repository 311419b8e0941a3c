"""Shape transfer of matrix products, convolutions, pools, cells and attention."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import Context, Dims, Shapes
from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.sizes import ONE, Size, parse


def matmul(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    a, b = dims[0], dims[1]
    if a is None or b is None:
        return [None]
    a = a[::-1] if node.attributes.get_int("transA", 0) else a
    b = b[::-1] if node.attributes.get_int("transB", 0) else b
    return [transfer.matmul(a, b, context.sizes)]


def conv(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    """A convolution; lengths that are numbers are for ONNX's own inference."""
    data, weight = dims[0], dims[1]
    if data is None or weight is None:
        return [None]
    groups = node.attributes.get_int("group", 1)
    windows = zip(*_windows(node, data[2:], weight[2:]), strict=True)
    sides = [_strided(*w, context.is_rounded) for w in windows]
    return [transfer.conv(data, weight, groups, sides, context.sizes)]


def _windows(
    node: ir.Node, sizes: Dims, kernel: Dims
) -> tuple[Dims, list[int | None], list[int], list[int | None], list[int]]:
    rank = len(sizes)

    def held(name: str, default: int, count: int) -> list[int]:
        return list(node.attributes.get_ints(name, [default] * count))

    pads: list[int | None] = list(held("pads", 0, 2 * rank))
    if node.attributes.get_string("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        pads = [None] * (2 * rank)
    window = [None if k is None else k.value for k in kernel]
    around = [
        None if a is None or b is None else a + b
        for a, b in zip(pads[:rank], pads[rank:], strict=True)
    ]
    strides, dilations = (held(name, 1, rank) for name in ("strides", "dilations"))
    return sizes, window, strides, around, dilations


def _strided(
    size: Size | None,
    window: int | None,
    stride: int,
    pad: int | None,
    dilation: int,
    rounded: bool,
) -> Size | None:
    if size is None or window is None or pad is None:
        return None
    left = size + Size.number(pad - dilation * (window - 1) - 1)
    if left.value is not None:
        return Size.number(left.value // stride + 1)
    return left // Size.number(stride) + ONE if rounded or stride == 1 else None


def pooled(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, kernel = dims[0], node.attributes.get_ints("kernel_shape")
    if data is None or kernel is None:
        return [None]
    if node.attributes.get_int("ceil_mode", 0):
        return [[*data[:2], *[None] * (len(data) - 2)]] * len(node.outputs)
    sides: Dims = [parse(k) for k in kernel]
    windows = zip(*_windows(node, data[2:], sides), strict=True)
    made = [*data[:2], *(_strided(*w, context.is_rounded) for w in windows)]
    return [made for _ in node.outputs]


def global_pool(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data = dims[0]
    return [None if data is None else [*data[:2], *[ONE] * (len(data) - 2)]]


def resized(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    """A Resize by sizes; what scales make is for ONNX's own inference."""
    sizes = context.ask(node.inputs[3]) if len(node.inputs) > 3 else None
    policy = node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    if not sizes or dims[0] is None or policy != "stretch":
        return [None]
    after = list(dims[0])
    axes = node.attributes.get_ints("axes", range(len(after)))
    for axis, size in zip(axes, sizes, strict=True):
        after[axis] = size
    return [after]


def recurrent(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    data, input_weight, weight = dims[:3]
    if data is None or input_weight is None or weight is None:
        return [None]
    context.sizes.same(data[-1], input_weight[-1])
    ways, hidden = weight[0], weight[-1]
    if node.attributes.get_int("layout", 0):
        y, state = [data[0], data[1], ways, hidden], [data[0], ways, hidden]
    else:
        y, state = [data[0], ways, data[1], hidden], [ways, data[1], hidden]
    return [y, state, state][: len(node.outputs)]


def attention(node: ir.Node, dims: list[Dims | None], context: Context) -> Shapes:
    q, k, v = dims[:3]
    if q is None or k is None or v is None or len(q) != 4:
        return [None]
    return [transfer.attention(q, k, v, context.sizes)]
