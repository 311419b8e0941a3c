"""Convolutions and pooling."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.sizes import Size
from burnish.codegen.writers.traced.table import same_as, writers, writes
from burnish.ops._kernels.window import each, pairs
from burnish.ops._kernels.window import window as geometry


def window(
    x: Any, kernel: Any, *, stride: Any, padding: Any, dilation: Any
) -> dict[str, Any]:
    """ONNX's attributes of a window, without defaults."""
    rank = len(kernel)
    strides, dilations = each(stride, rank, "stride"), each(dilation, rank, "dilation")
    found: dict[str, Any] = {"kernel_shape": list(kernel)}
    if padding in ("same_upper", "same_lower"):
        found["auto_pad"] = padding.upper()
    else:
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        pads = pairs(padding, x.shape[2:], spans, strides, "export")
        if any(map(any, pads)):
            found["pads"] = [*(b for b, _ in pads), *(a for _, a in pads)]
    if any(n != 1 for n in strides):
        found["strides"] = list(strides)
    if any(n != 1 for n in dilations):
        found["dilations"] = list(dilations)
    return found


@writes("conv")
def conv(
    emit: Emitter,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    groups: int,
    **sides: Any,
) -> Any:
    options = window(x, weight.shape[2:], **sides)
    return emit(
        "Conv", x, weight, bias, group=groups if groups != 1 else None, **options
    )


@writes("conv_transpose")
def conv_transpose(
    emit: Emitter,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    output_padding: Any,
    groups: int,
    **sides: Any,
) -> Any:
    options = window(x, weight.shape[2:], **sides)
    more = each(output_padding, len(weight.shape) - 2, "output_padding")
    if any(more):
        options["output_padding"] = list(more)
    if groups != 1:
        options["group"] = groups
    return emit("ConvTranspose", x, weight, bias, **options)


@writes(max_pool="MaxPool", avg_pool="AveragePool", lp_pool="LpPool")
def pool(
    emit: Emitter,
    x: Any,
    *,
    op: str,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor_override: int | None = None,
    storage_order: int = 0,
    p: float = 2,
    outputs: int = 1,
) -> Any:
    kernel = each(kernel_size, len(x.shape) - 2, "kernel_size")
    sides = {
        "stride": kernel if stride is None else stride,
        "padding": padding,
        "dilation": dilation,
    }
    if divisor_override is not None:
        total = window_sum(emit, x, kernel_size=kernel, ceil_mode=ceil_mode, **sides)
        return emit("Mul", total, np.asarray(1 / divisor_override, x.dtype))
    options = window(x, kernel, **sides)
    if ceil_mode:
        options["ceil_mode"] = 1
    if op == "AveragePool" and count_include_pad:
        options["count_include_pad"] = 1
    if op == "LpPool":
        options["p"] = int(p)
    if op == "MaxPool" and storage_order:
        options["storage_order"] = storage_order
    return emit(op, x, outputs=outputs, **options)


writers.update({
    "max_pool_with_indices": partial(pool, op="MaxPool", outputs=2),
    "global_avg_pool": same_as("GlobalAveragePool"),
    "global_max_pool": same_as("GlobalMaxPool"),
})  # fmt: skip


@writes("global_lp_pool")
def global_lp_pool(emit: Emitter, x: Any, *, p: float = 2) -> Any:
    return emit("GlobalLpPool", x, p=int(p))


@writes(adaptive_avg_pool="AveragePool", adaptive_max_pool="MaxPool")
def adaptive_pool(emit: Emitter, x: Any, *, op: str, output_size: Any) -> Any:
    """Places that see as much each are a plain pool; other ones are seen one by one."""
    sizes = x.shape[2:]
    wanted = each(output_size, len(sizes), "output_size")
    out = [n if p is None else p for n, p in zip(sizes, wanted, strict=True)]
    if all(p == 1 for p in out):
        return emit(f"Global{op}", x)
    if any(isinstance(n, Ref) for n in out) or any(type(n) is not int for n in sizes):
        raise emit.cannot("an adaptive pool over a dynamic axis")
    if all(n % p == 0 for n, p in zip(sizes, out, strict=True)):
        kernel = [n // p for n, p in zip(sizes, out, strict=True)]
        return emit(op, x, kernel_shape=kernel, strides=kernel)
    made = emit.value(x)
    reduction = "ReduceMean" if op == "AveragePool" else "ReduceMax"
    for axis, (n, p) in enumerate(zip(sizes, out, strict=True), 2):
        parts = []
        for i in range(p):
            ends = emit.ints([i * n // p]), emit.ints([-(-(i + 1) * n // p)])
            seen = emit("Slice", made, *ends, emit.ints([axis]))
            parts.append(emit(reduction, seen, emit.ints([axis]), keepdims=1))
        made = emit("Concat", *parts, axis=axis)
    return made


@writes("window_sum")
def window_sum(
    emit: Emitter, x: Any, *, kernel_size: Any, ceil_mode: bool, **sides: Any
) -> Any:
    """Sums under each window; what ceil_mode adds is padding, which nothing counts."""
    kernel = each(kernel_size, len(x.shape) - 2, "kernel_size")
    if sides["stride"] is None:
        sides["stride"] = kernel
    if ceil_mode:
        if any(isinstance(n, Size) for n in x.shape[2:]):
            raise emit.cannot("ceil_mode over a dynamic axis")
        whole = geometry("export", x.shape[2:], kernel, ceil_mode=True, **sides)
        sides["padding"] = whole.pads
    options = window(x, kernel, **sides)
    mean = emit("AveragePool", x, **options, count_include_pad=1)
    return emit("Mul", mean, np.asarray(float(np.prod(kernel)), x.dtype))


@writes("deform_conv")
def deform_conv(
    emit: Emitter,
    x: Any,
    weight: Any,
    offset: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    groups: int = 1,
    offset_groups: int = 1,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Any:
    sides = {"stride": stride, "padding": padding, "dilation": dilation}
    options = window(x, weight.shape[2:], **sides)
    return emit(
        "DeformConv", x, weight, offset, bias, mask, group=groups,
        offset_group=offset_groups, **options,
    )  # fmt: skip


@writes("im2col")
def im2col(emit: Emitter, x: Any, *, kernel_size: Any, **sides: Any) -> Any:
    """A convolution with one weight for each element of the window."""
    rank = len(x.shape) - 2
    kernel = each(kernel_size, rank, "kernel_size")
    count, channels = int(np.prod(kernel)), x.shape[1]
    one = np.eye(count, dtype=x.dtype).reshape(count, 1, *kernel)
    weight = np.tile(one, (channels, 1, *(1 for _ in kernel)))
    options = window(x, kernel, **sides)
    made = emit("Conv", x, weight, group=channels, **options)
    return emit("Reshape", made, emit.ints([0, channels * count, -1]))


@writes("col2im")
def col2im(
    emit: Emitter,
    x: Any,
    *,
    sizes: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
) -> Any:
    rank = len(emit.result.shape) - 2
    kernel = each(kernel_size, rank, "kernel_size")
    pads = pairs(padding, sizes, kernel, stride, "export")
    return emit(
        "Col2Im", x, emit.ints(emit.result.shape[2:]), emit.ints(kernel),
        strides=list(each(stride, rank, "stride")),
        dilations=list(each(dilation, rank, "dilation")),
        pads=[*(b for b, _ in pads), *(a for _, a in pads)],
    )  # fmt: skip


@writes("max_unpool")
def max_unpool(emit: Emitter, x: Any, indices: Any, *, shape: Any) -> Any:
    """Elements put where they came from, by their places in the flattened result."""
    flat = emit("Reshape", x, emit.ints([-1]))
    places = emit("Reshape", indices, emit.ints([-1]))
    count = emit("ReduceProd", emit.ints(emit.result.shape), keepdims=1)
    empty = emit("Expand", np.asarray(0, x.dtype), count)
    made = emit("ScatterElements", empty, places, flat, axis=0)
    return emit("Reshape", made, emit.ints(emit.result.shape))
