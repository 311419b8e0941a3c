"""Convolutions: a layer where the filters are weights, else a call."""

from __future__ import annotations

from burnish.codegen.ops._rules import Result, call, layer, onnx_op, owned
from burnish.codegen.program import Expression, Weight


@onnx_op("Conv")
def conv(
    X: Expression,
    W: Expression,
    B: Expression | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Result:
    rank = len(W.shape or ()) - 2
    options = {
        "stride": alike(strides or [1] * rank),
        "padding": padding(auto_pad, pads or [0] * 2 * rank),
        "dilation": alike(dilations or [1] * rank),
        "groups": group,
    }
    if owned(W, B) and isinstance(W, Weight) and rank in (1, 2, 3):
        out_channels, in_channels, *kernel = W.shape
        sizes = (in_channels * group, out_channels, alike(kernel))
        weights = {"weight": W} | ({"bias": B} if isinstance(B, Weight) else {})
        options["bias"] = B is not None
        return layer(f"Conv{rank}d", sizes, options, weights, X)
    return call("conv", X, W, B, **options)


def alike(sizes: list[int]) -> int | tuple[int, ...]:
    """(3, 3) as 3: layers take both."""
    return sizes[0] if len(set(sizes)) == 1 else tuple(sizes)


def padding(auto_pad: str, pads: list[int]) -> int | tuple[object, ...]:
    """ONNX's begins-then-ends as an int, one number an axis, or pairs."""
    rank = len(pads) // 2
    if pads[:rank] == pads[rank:]:
        return alike(pads[:rank])
    return tuple(zip(pads[:rank], pads[rank:], strict=True))
