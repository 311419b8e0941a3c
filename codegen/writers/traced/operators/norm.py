"""Normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.capture.ref import Ref
from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.table import writes


@writes("layer_norm_from")
def layer_norm_from(
    emit: Emitter,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axis: int,
    eps: float,
) -> Any:
    """The weight, or ones, because ONNX requires a scale."""
    if weight is None:
        weight = np.ones(x.shape[axis % len(x.shape) :], x.dtype)
    return emit("LayerNormalization", x, weight, bias, axis=axis, epsilon=eps)


@writes("rms_norm_from")
def rms_norm_from(
    emit: Emitter, x: Any, weight: Any = None, *, axis: int, eps: float
) -> Any:
    rank = len(x.shape)
    axes = emit.ints(range(axis % rank - rank, 0))
    mean = emit("ReduceMean", emit("Mul", x, x), axes, keepdims=1)
    root = emit("Sqrt", emit("Add", mean, np.asarray(eps, x.dtype)))
    y = emit("Div", x, root)
    return y if weight is None else emit("Mul", y, weight)


@writes("standardize")
def standardize(emit: Emitter, x: Any, *, axes: Any, eps: float, center: bool) -> Any:
    chosen, y = emit.ints(axes), emit.value(x)
    mean: Any = np.zeros((1,) * len(x.shape), x.dtype)
    if center:
        mean = emit("ReduceMean", x, chosen, keepdims=1)
        y = emit("Sub", x, mean)
    var = emit("ReduceMean", emit("Mul", y, y), chosen, keepdims=1)
    root = emit("Sqrt", emit("Add", var, np.asarray(eps, x.dtype)))
    return emit("Div", y, root), emit.value(mean), var


@writes("batch_norm")
def batch_norm(
    emit: Emitter,
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float,
) -> Any:
    count = running_mean.shape
    scale = np.ones(count, x.dtype) if not isinstance(weight, Ref) else weight
    shift = np.zeros(count, x.dtype) if not isinstance(bias, Ref) else bias
    return emit(
        "BatchNormalization", x, scale, shift, running_mean, running_var, epsilon=eps
    )


@writes("group_norm_of")
def group_norm_of(
    emit: Emitter,
    x: Any,
    scale: Any = None,
    bias: Any = None,
    *,
    num_groups: int,
    eps: float,
) -> Any:
    """Opset 20's GroupNormalization has a scale for each group: decompose."""
    grouped = emit("Reshape", x, emit.ints([0, num_groups, -1]))
    ones = np.ones(num_groups, x.dtype)
    y = emit("InstanceNormalization", grouped, ones, np.zeros_like(ones), epsilon=eps)
    y = emit("Reshape", y, emit("Shape", x))
    for op, part in (("Mul", scale), ("Add", bias)):
        if part is not None:
            beside = emit.ints([-1, *(1 for _ in x.shape[2:])])
            y = emit(op, y, emit("Reshape", part, beside))
    return y


@writes("instance_norm")
def instance_norm(
    emit: Emitter, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> Any:
    ones = np.ones(x.shape[1], x.dtype)
    scale = ones if weight is None else weight
    shift = ones * 0 if bias is None else bias
    return emit("InstanceNormalization", x, scale, shift, epsilon=eps)


@writes("lrn")
def lrn(
    emit: Emitter,
    x: Any,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Any:
    if len(x.shape) == 4 and size % 2:
        return emit("LRN", x, size=size, alpha=alpha, beta=beta, bias=bias)
    squares = emit("Mul", x, x)  # onnxruntime's LRN is of pictures and odd sizes
    rows = emit("Reshape", squares, emit.ints([0, 1, x.shape[1], -1]))
    around = [(size - 1) // 2, 0, size // 2, 0]
    mean = emit(
        "AveragePool", rows, kernel_shape=[size, 1], pads=around, count_include_pad=1
    )
    kind = x.dtype
    scaled = emit(
        "Mul", emit("Reshape", mean, emit("Shape", x)), np.asarray(alpha, kind)
    )
    room = emit("Add", scaled, np.asarray(bias, kind))
    return emit("Mul", x, emit("Pow", room, np.asarray(-beta, kind)))


@writes("lp_normalization")
def lp_normalization(emit: Emitter, x: Any, *, axis: int = -1, p: int = 2) -> Any:
    return emit("LpNormalization", x, axis=axis, p=p)


@writes("mean_variance_normalization")
def mean_variance(emit: Emitter, x: Any, *, axes: Any = (0, 2, 3)) -> Any:
    return emit("MeanVarianceNormalization", x, axes=list(axes))
