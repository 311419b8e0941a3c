"""Convolutions: a layer where the filters are weights, else a call."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule import costs
from burnish.codegen.ops.rule.expressions import (
    UnfitError,
    call,
    ints,
    layer,
    operand,
    owned,
    tensor,
)
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import CONVOLUTION, OWN_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.windows import alike, convolution, padding
from burnish.codegen.ops.rule.words import size
from burnish.codegen.ops.shapes import layers
from burnish.codegen.program import BinOp, Call, Expression, Literal, Weight


@onnx_op(
    "Conv",
    traits=OWN_SHAPE | UNBOUNDED | CONVOLUTION,
    shapes=layers.conv,
    macs=costs.correlated,
    weights=(1, 2),
    options=convolution,
)
def conv(
    X: Expression, W: Expression, B: Expression | None = None, **window: Any
) -> Result:
    rank = len(W.shape or X.shape or ()) - 2
    options = convolution(rank, **window)
    if owned(W, B) and isinstance(W, Weight) and rank in (1, 2, 3):
        out_channels, in_channels, *kernel = W.shape
        sizes = (in_channels * options["groups"], out_channels, alike(kernel))
        return _layer(f"Conv{rank}d", sizes, options, W, B, X)
    return call("conv", X, W, B, **options)


@onnx_op(
    "ConvTranspose",
    traits=OWN_SHAPE | UNBOUNDED | CONVOLUTION,
    macs=costs.transposed,
    weights=(1, 2),
)
def conv_transpose(
    X: Expression,
    W: Expression,
    B: Expression | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Result:
    rank = len(W.shape or X.shape or ()) - 2
    stride = strides or [1] * rank
    dilation = dilations or [1] * rank
    extra = output_padding or [0] * rank
    pairs: Any = padding(auto_pad, pads, rank)
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        kernel: list[Any] = kernel_shape or [size(W, i + 2) for i in range(rank)]
        totals = [
            _total(X, i, s, d, k, e, output_shape)
            for i, (s, d, k, e) in enumerate(
                zip(stride, dilation, kernel, extra, strict=True)
            )
        ]
        pairs = _shared(totals, auto_pad)
    options = {
        "stride": alike(stride),
        "padding": pairs,
        "output_padding": alike(extra),
        "groups": group,
        "dilation": alike(dilation),
    }
    known_pads = not (isinstance(pairs, tuple) and isinstance(pairs[0], Expression))
    if owned(W, B) and isinstance(W, Weight) and rank in (1, 2, 3) and known_pads:
        in_channels, out_channels, *kernel = W.shape
        sizes = (in_channels, out_channels * group, alike(kernel))
        return _layer(f"ConvTranspose{rank}d", sizes, options, W, B, X)
    return call("conv_transpose", X, W, B, **options)


@onnx_op("DeformConv", since=19, traits=OWN_SHAPE | UNBOUNDED, macs=costs.correlated)
def deform_conv(
    X: Expression,
    W: Expression,
    offset: Expression,
    B: Expression | None = None,
    mask: Expression | None = None,
    *,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Result:
    rank = len(W.shape or X.shape or ()) - 2
    options = convolution(
        rank, dilations=dilations, group=group, pads=pads, strides=strides
    )
    inputs = (X, W, offset, B, mask)
    return call("deform_conv", *inputs, **options, offset_groups=offset_group)


@onnx_op("Col2Im", since=18, traits=OWN_SHAPE | UNBOUNDED)
def col2im(
    input_: Expression,
    image_shape: Expression,
    block_shape: Expression,
    *,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Result:
    return call(
        "col2im",
        tensor(input_),
        sizes=_tuple(ints(image_shape)),
        kernel_size=_tuple(ints(block_shape)),
        stride=alike(strides or [1]),
        padding=padding("NOTSET", pads, len(pads or ()) // 2),
        dilation=alike(dilations or [1]),
    )


def _tuple(sizes: list[Any] | Expression) -> Any:
    if isinstance(sizes, Expression):
        return Call("tuple", (sizes,))
    return tuple(sizes)


def _total(
    x: Expression,
    axis: int,
    stride: int,
    dilation: int,
    kernel: Any,
    extra: int,
    output_shape: list[int] | None,
) -> Any:
    """The padding that gives the requested output size."""
    length = _plain(kernel)
    if not isinstance(length, int):
        raise UnfitError("expected kernel_shape, or weights whose sizes are known")
    span = dilation * (length - 1) + 1
    if output_shape is None:  # SAME: the input's size times the stride
        return max(0, extra + span - stride)
    n = _plain(size(x, axis + 2))
    rest = extra + span - stride - output_shape[axis]
    if isinstance(n, int):
        return stride * n + rest
    return BinOp("+", BinOp("*", Literal(stride), n), Literal(rest))


def _plain(number: Any) -> Any:
    return number.value if isinstance(number, Literal) else number


def _shared(totals: list[Any], auto_pad: str) -> Any:
    """Padding before and after; the odd one where auto_pad says."""
    pads = []
    for total in totals:
        if isinstance(total, int):
            half: Any = total // 2
            rest: Any = total - half
        else:
            half = BinOp("//", total, Literal(2))
            rest = BinOp("-", total, half)
        pads.append((half, rest) if auto_pad == "SAME_UPPER" else (rest, half))
    if not all(isinstance(total, int) for total in totals):
        return tuple(operand(pair) for pair in pads)
    return padding("NOTSET", [p[0] for p in pads] + [p[1] for p in pads], len(pads))


def _layer(
    kind: str,
    sizes: tuple[Any, ...],
    options: dict[str, Any],
    weight: Weight,
    bias: Expression | None,
    x: Expression,
) -> Result:
    weights = {"weight": weight} | ({"bias": bias} if isinstance(bias, Weight) else {})
    return layer(kind, sizes, options | {"bias": bias is not None}, weights, x)
