"""Pooling."""

from __future__ import annotations

from functools import partial
from typing import Any

from burnish.codegen.ops.rule.expressions import UnfitError, call, layer, operand
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import OWN_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.windows import alike, padding
from burnish.codegen.ops.rule.words import numbers, size
from burnish.codegen.ops.shapes import layers
from burnish.codegen.program import BinOp, Expression, Literal


def _window(
    x: Expression,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: list[int] | None = None,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> dict[str, Any]:
    rank = len(kernel_shape)
    if x.rank not in (None, rank + 2):
        raise UnfitError(
            f"expected an input of {rank + 2} axes for kernel_shape {kernel_shape}, "
            f"got {x.rank}; export the pool of an input with a batch and channels"
        )
    stride = alike(strides or [1] * rank)
    kernel = alike(kernel_shape)
    return {
        "kernel_size": kernel,
        "stride": None if stride == kernel else stride,
        "padding": padding(auto_pad, pads, rank),
        "dilation": alike(dilations or [1] * rank),
        "ceil_mode": bool(ceil_mode),
    }


_pool = partial(onnx_op, traits=OWN_SHAPE | UNBOUNDED, options=_window)


@_pool("MaxPool", shapes=layers.pooled)
def max_pool(
    X: Expression, *, storage_order: int = 0, node: NodeContext, **window: Any
) -> Result:
    options = _window(X, **window)
    if len(node.outputs) == 1:
        return call("max_pool", X, **options)
    return call("max_pool_with_indices", X, **options, storage_order=storage_order)


@_pool("AveragePool", shapes=layers.pooled)
def average_pool(X: Expression, *, count_include_pad: int = 0, **window: Any) -> Result:
    options = _window(X, **window)
    counted = count_include_pad and (options["padding"] != 0 or options["ceil_mode"])
    return call("avg_pool", X, **options, count_include_pad=bool(counted))


@_pool("LpPool", since=2)
def lp_pool(X: Expression, *, p: int = 2, **window: Any) -> Result:
    return call("lp_pool", X, **_window(X, **window), p=p)


@onnx_op("GlobalAveragePool", traits=OWN_SHAPE, shapes=layers.global_pool)
def global_average_pool(X: Expression) -> Result:
    return call("global_avg_pool", X)


called(
    "GlobalMaxPool",
    "global_max_pool",
    "X",
    traits=OWN_SHAPE,
    shapes=layers.global_pool,
)
called("GlobalLpPool", "global_lp_pool", "X", {"p": 2}, since=2, traits=OWN_SHAPE)


@onnx_op("MaxUnpool", traits=OWN_SHAPE | UNBOUNDED)
def max_unpool(
    X: Expression,
    I: Expression,  # noqa: E741
    output_shape: Expression | None = None,
    *,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
    node: NodeContext,
) -> Result:
    """The indices count without `output_shape`, which adds zeros at the ends."""
    rank = len(kernel_shape)
    step, edges = strides or [1] * rank, pads or [0] * 2 * rank
    plain: list[Any] = [size(X, 0), size(X, 1)]
    for i, (s, k) in enumerate(zip(step, kernel_shape, strict=True)):
        n, rest = size(X, i + 2), k - s - edges[i] - edges[i + rank]
        if isinstance(n, Literal):
            plain.append(Literal(n.value * s + rest))
        else:
            plain.append(BinOp("+", BinOp("*", n, Literal(s)), Literal(rest)))
    y = call("max_unpool", X, I, shape=tuple(plain))
    if output_shape is None:
        return y
    wanted = numbers(node, output_shape, "size") or []
    pairs = tuple(
        (0, BinOp("-", operand(asked), n))
        for asked, n in zip(wanted, plain, strict=True)
    )
    return call("pad", y, pad_width=tuple(map(operand, pairs)))


@onnx_op("AdaptiveAveragePool", domain="burnish", traits=OWN_SHAPE)
def adaptive_average_pool(x: Expression, *, output_size: list[int]) -> Result:
    """Adaptive pooling: windows overlap where the size is not a multiple."""
    kind = f"AdaptiveAvgPool{len(output_size)}d"
    return layer(kind, (alike(output_size),), {}, {}, x)
