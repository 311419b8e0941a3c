"""Normalisation: a layer where scale and bias are weights, else a call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from burnish.codegen.ops.rule.expressions import call, layer, operand, owned
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import OWN_SHAPE, SAME_SHAPE
from burnish.codegen.ops.rule.words import cast, unpacked
from burnish.codegen.program import (
    Attribute,
    BinOp,
    Constant,
    Expression,
    Literal,
    Slice,
    Source,
    Subscript,
    Weight,
)

_COUNT = Source(1)


@onnx_op("BatchNormalization", since=9)
def batch_normalization_of_weights(
    X: Expression,
    scale: Expression,
    B: Expression,
    mean: Expression,
    var: Expression,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
) -> Result:
    """ONNX's momentum weighs the old statistics, the layer's the new ones."""
    rank = None if X.rank is None else {2: 1, 3: 1, 4: 2, 5: 3}.get(X.rank)
    weights = {"weight": scale, "bias": B, "running_mean": mean, "running_var": var}
    known = isinstance(mean, Weight) and isinstance(var, Weight)
    options = {"eps": epsilon, "momentum": _other(momentum)}
    if _is_plain(scale, B):
        options["affine"] = False
        del weights["weight"], weights["bias"]
    elif not owned(scale, B) or scale is B:
        known = False
    if rank is None or not known:
        return call("batch_norm", X, mean, var, scale, B, eps=epsilon)
    held = {
        name: replace(weight, trained=not name.startswith("running"))
        for name, weight in weights.items()
        if isinstance(weight, Weight)
    }
    held["num_batches_tracked"] = _no_batches()
    size = held["running_mean"].shape[0]
    return layer(f"BatchNorm{rank}d", (size,), options, held, X)


@onnx_op("BatchNormalization", since=14, traits=SAME_SHAPE, weights=(1, 2, 3, 4))
def batch_normalization(
    X: Expression,
    scale: Expression,
    B: Expression,
    input_mean: Expression,
    input_var: Expression,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    node: NodeContext,
) -> Result:
    if not training_mode:
        inputs = (X, scale, B, input_mean, input_var)
        options = {"epsilon": epsilon, "momentum": momentum}
        return batch_normalization_of_weights(*inputs, **options)
    parts = call("batch_norm_train", X, scale, B, eps=epsilon)
    y, mean, var = unpacked(node, parts, "y", "mean", "var", dtype=X.dtype)
    running = [
        BinOp("+", _times(momentum, old), _times(_other(momentum), new))
        for old, new in ((input_mean, mean), (input_var, var))
    ]
    return tuple([y, *running][: len(node.outputs)])


def _is_plain(scale: Expression, bias: Expression | None) -> bool:
    """Whether a norm has no weights of its own: ones and zeros that do not train."""
    return all(
        isinstance(value, Constant | Weight)
        and not getattr(value, "trained", False)
        and bool((value.array == number).all())
        for value, number in ((scale, 1), (bias, 0))
        if value is not None
    )


def _no_batches() -> Weight:
    """The layer's count of batches, which ONNX does not keep."""
    return Weight("", "int64", (), _zero, trained=False, source=_COUNT)


def _zero() -> np.ndarray:
    return np.zeros((), np.int64)


def _other(momentum: float) -> float:
    """1 - momentum in as many digits as it has: 0.9 gives 0.1."""
    return float(f"{1 - momentum:.7g}")


def _times(factor: float, value: Expression) -> Expression:
    return BinOp("*", Literal(factor), operand(value))


@onnx_op("LayerNormalization", traits=SAME_SHAPE, weights=(1, 2))
def layer_normalization(
    X: Expression,
    Scale: Expression,
    B: Expression | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    node: NodeContext,
) -> Result:
    if len(node.outputs) > 1:
        return _layer_norm_with_statistics(X, Scale, B, axis, epsilon, node)
    fits = Scale.rank == (-axis if axis < 0 else (X.rank or 0) - axis)
    if isinstance(Scale, Weight) and _is_plain(Scale, B) and fits:
        options = {"eps": epsilon, "elementwise_affine": False}
        return _sized("LayerNorm", Scale, options, {}, X)
    if isinstance(Scale, Weight) and owned(Scale, B) and fits:
        if isinstance(B, Weight) and B.shape == Scale.shape:
            weights = {"weight": Scale, "bias": B}
            return _sized("LayerNorm", Scale, {"eps": epsilon}, weights, X)
        if B is None:
            options = {"eps": epsilon, "bias": False}
            return _sized("LayerNorm", Scale, options, {"weight": Scale}, X)
    return call("layer_norm", X, _sizes_from(X, axis), Scale, B, eps=epsilon)


@onnx_op("LayerNormalization", domain="burnish", traits=SAME_SHAPE)
def layer_normalization_alone(
    X: Expression, *, axis: int = -1, epsilon: float = 1e-5
) -> Result:
    """Without scale and bias."""
    return call("layer_norm", X, _sizes_from(X, axis), eps=epsilon)


def _sizes_from(x: Expression, axis: int) -> Expression:
    """`x.shape[axis:]`, counted from the end where x's rank is known."""
    start = axis - x.rank if x.rank and axis >= 0 else axis
    return Subscript(Attribute(x, "shape"), (Slice(Literal(start), None),))


def _sized(
    kind: str,
    scale: Weight,
    options: dict[str, Any],
    weights: dict[str, Weight],
    x: Expression,
) -> Result:
    size = scale.shape[0] if len(scale.shape) == 1 else scale.shape
    return layer(kind, (size,), options, weights, x)


def _layer_norm_with_statistics(
    x: Expression,
    scale: Expression,
    bias: Expression | None,
    axis: int,
    epsilon: float,
    node: NodeContext,
) -> Result:
    """Mean and InvStdDev are in float32, whatever x is."""
    rank = x.rank or 0
    axes = tuple(range(axis % rank, rank))
    source = cast(x, "float32") if x.dtype in ("float16", "bfloat16") else operand(x)
    parts = call("standardize", source, axes=axes, eps=epsilon)
    unit, mean, var = unpacked(node, parts, "y", "mean", "var", dtype=source.dtype)
    scaled: Expression = BinOp("*", cast(unit, x.dtype), operand(scale))
    if bias is not None:
        scaled = BinOp("+", scaled, operand(bias))
    spread = call("sqrt", BinOp("+", var, Literal(epsilon)))
    return tuple([scaled, mean, BinOp("/", Literal(1), spread)][: len(node.outputs)])


@onnx_op("RMSNormalization", traits=SAME_SHAPE, weights=(1,))
def rms_normalization(
    X: Expression,
    scale: Expression,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Result:
    """The result has the dtype of `scale`."""
    fits = scale.rank == (-axis if axis < 0 else (X.rank or 0) - axis)
    if X.dtype != scale.dtype and None not in (X.dtype, scale.dtype):
        wide = cast(X, "float32")
        y = call("rms_norm", wide, _sizes_from(X, axis), scale, eps=epsilon)
        return cast(y, scale.dtype)
    if isinstance(scale, Weight) and owned(scale) and fits:
        return _sized("RMSNorm", scale, {"eps": epsilon}, {"weight": scale}, X)
    return call("rms_norm", X, _sizes_from(X, axis), scale, eps=epsilon)


@onnx_op("InstanceNormalization", since=6, traits=SAME_SHAPE, weights=(1, 2))
def instance_normalization(
    input_: Expression, scale: Expression, B: Expression, *, epsilon: float = 1e-5
) -> Result:
    spatial = None if input_.rank is None else input_.rank - 2
    if isinstance(scale, Weight) and _is_plain(scale, B) and spatial in (1, 2, 3):
        kind = f"InstanceNorm{spatial}d"
        return layer(kind, (scale.shape[0],), {"eps": epsilon}, {}, input_)
    if isinstance(scale, Weight) and owned(scale, B) and spatial in (1, 2, 3):
        assert isinstance(B, Weight)
        options = {"eps": epsilon, "affine": True}
        weights = {"weight": scale, "bias": B}
        return layer(
            f"InstanceNorm{spatial}d", (scale.shape[0],), options, weights, input_
        )
    return call("instance_norm", input_, weight=scale, bias=B, eps=epsilon)


@onnx_op("GroupNormalization", since=21, traits=SAME_SHAPE, weights=(1, 2))
def group_normalization(
    X: Expression,
    scale: Expression,
    bias: Expression,
    *,
    epsilon: float = 1e-5,
    num_groups: int,
    stash_type: int = 1,
) -> Result:
    if isinstance(scale, Weight) and _is_plain(scale, bias):
        options = {"eps": epsilon, "affine": False}
        return layer("GroupNorm", (num_groups, scale.shape[0]), options, {}, X)
    if isinstance(scale, Weight) and isinstance(bias, Weight) and owned(scale, bias):
        weights = {"weight": scale, "bias": bias}
        sizes = (num_groups, scale.shape[0])
        return layer("GroupNorm", sizes, {"eps": epsilon}, weights, X)
    return call("group_norm", X, num_groups, scale, bias, eps=epsilon)


@onnx_op("LRN", traits=SAME_SHAPE)
def lrn(
    X: Expression,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    size: int,
) -> Result:
    if size % 2:
        return local_response_norm(X, size=size, alpha=alpha, beta=beta, k=bias)
    return call("lrn", X, size=size, alpha=alpha, beta=beta, bias=bias)


_LP = {"axis": -1, "p": 2}
called("LpNormalization", "lp_normalization", "input", _LP, traits=SAME_SHAPE)


@onnx_op("MeanVarianceNormalization", since=9, traits=SAME_SHAPE)
def mean_variance_normalization(
    X: Expression, *, axes: tuple[int, ...] | list[int] = (0, 2, 3)
) -> Result:
    """Axes that X does not have are left out, as onnxruntime does: (0, 2) of rank 3."""
    held = tuple(a for a in axes if X.rank is None or -X.rank <= a < X.rank)
    return call("mean_variance_normalization", X, axes=held)


@onnx_op("LocalResponseNorm", domain="burnish", traits=SAME_SHAPE)
def local_response_norm(
    x: Expression, *, size: int, alpha: float, beta: float, k: float
) -> Result:
    """As PyTorch counts the channels around one: of an even size, one more before."""
    options = {"alpha": alpha, "beta": beta, "k": k}
    return layer("LocalResponseNorm", (size,), options, {}, x)


@onnx_op("Normalize", domain="burnish", traits=SAME_SHAPE)
def normalize(x: Expression, *, axis: int, p: int, epsilon: float) -> Result:
    return call("normalize", x, p=p, axis=axis, eps=epsilon)


@onnx_op("CosineSimilarity", domain="burnish", traits=OWN_SHAPE)
def cosine_similarity(
    a: Expression, b: Expression, *, axis: int, epsilon: float
) -> Result:
    return call("cosine_similarity", a, b, axis=axis, eps=epsilon)
