"""Convolutions: a layer where the filters are weights, else a call."""

from __future__ import annotations

from typing import Any

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
    rank = len(W.shape or X.shape or ()) - 2
    options = {
        "stride": alike(strides or [1] * rank),
        "padding": padding(auto_pad, pads, rank),
        "dilation": alike(dilations or [1] * rank),
        "groups": group,
    }
    if owned(W, B) and isinstance(W, Weight) and rank in (1, 2, 3):
        out_channels, in_channels, *kernel = W.shape
        sizes = (in_channels * group, out_channels, alike(kernel))
        weights = {"weight": W} | ({"bias": B} if isinstance(B, Weight) else {})
        return layer(f"Conv{rank}d", sizes, options | _bias(B), weights, X)
    return call("conv", X, W, B, **options)


@onnx_op("ConvTranspose")
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
        spans = [
            d * (k - 1) + 1
            for d, k in zip(dilation, (W.shape or ())[2:], strict=True)  # type: ignore[operator]
        ]
        inputs = (X.shape or ())[2:]
        target = output_shape or [n * s for n, s in zip(inputs, stride, strict=True)]  # type: ignore[operator]
        pairs = _pads_for(target, inputs, spans, stride, extra, auto_pad)
    options = {
        "stride": alike(stride),
        "padding": pairs,
        "output_padding": alike(extra),
        "groups": group,
        "dilation": alike(dilation),
    }
    if owned(W, B) and isinstance(W, Weight) and rank in (1, 2, 3):
        in_channels, out_channels, *kernel = W.shape
        sizes = (in_channels, out_channels * group, alike(kernel))
        weights = {"weight": W} | ({"bias": B} if isinstance(B, Weight) else {})
        return layer(f"ConvTranspose{rank}d", sizes, options | _bias(B), weights, X)
    return call("conv_transpose", X, W, B, **options)


def _pads_for(
    target: list[int],
    inputs: Any,
    spans: list[int],
    stride: list[int],
    extra: list[int],
    auto_pad: str,
) -> Any:
    """The padding that gives this output size; the odd one where auto_pad says."""
    pads = []
    for out, n, span, s, e in zip(target, inputs, spans, stride, extra, strict=True):
        total = s * (n - 1) + e + span - out
        half = total // 2
        upper = auto_pad == "SAME_UPPER"
        pads.append((half, total - half) if upper else (total - half, half))
    return padding("NOTSET", [p[0] for p in pads] + [p[1] for p in pads], len(pads))


def _bias(B: Expression | None) -> dict[str, Any]:
    return {} if B is not None else {"bias": False}


def alike(sizes: list[Any]) -> Any:
    """(3, 3) as 3: layers take both."""
    return sizes[0] if len(set(sizes)) == 1 else tuple(sizes)


def padding(auto_pad: str, pads: list[int] | None, rank: int) -> Any:
    """ONNX's begins-then-ends as an int, one number an axis, pairs, or a name."""
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return auto_pad.lower()
    if pads is None or auto_pad == "VALID" or not any(pads):
        return 0
    if pads[:rank] == pads[rank:]:
        return alike(pads[:rank])
    return tuple(zip(pads[:rank], pads[rank:], strict=True))
