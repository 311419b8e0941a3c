"""Matrix products, attention, linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.writers.traced.emitter import Emitter
from burnish.codegen.writers.traced.operators.elementwise import same
from burnish.codegen.writers.traced.sizes import Size
from burnish.codegen.writers.traced.table import writes


@writes("matmul")
def matmul(emit: Emitter, a: Any, b: Any) -> Any:
    return emit("MatMul", *same(emit, a, b, dtype=emit.result.dtype))


@writes("linear")
def linear(emit: Emitter, x: Any, weight: Any, bias: Any = None) -> Any:
    """A matrix by Gemm, which takes the weight as it is."""
    order = [*range(len(weight.shape))]
    order[-2:] = order[:-3:-1]
    maker = emit.value(weight).producer()
    perm = maker and maker.op_type == "Transpose" and maker.attributes["perm"].as_ints()
    as_it_is = None  # of nn.Linear(transposed=True)
    if maker and perm and list(perm) == order:
        as_it_is = maker.inputs[0]
    if len(x.shape) == 2 and len(weight.shape) == 2:
        if as_it_is is not None:
            return emit("Gemm", x, as_it_is, bias)
        return emit("Gemm", x, weight, bias, transB=1)
    y = emit("MatMul", x, as_it_is or emit("Transpose", weight, perm=order))
    return y if bias is None else emit("Add", y, bias)


@writes("gemm")
def gemm(
    emit: Emitter,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Any:
    return emit(
        "Gemm", a, b, c, alpha=alpha, beta=beta, transA=int(trans_a),
        transB=int(trans_b),
    )  # fmt: skip


@writes("einsum_of")
def einsum_of(emit: Emitter, *arrays: Any, equation: str) -> Any:
    kind = emit.result.dtype
    return emit("Einsum", *same(emit, *arrays, dtype=kind), equation=equation)


@writes("attention_weights")
def attention_weights(
    emit: Emitter,
    q: Any,
    k: Any,
    mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Any:
    kind = q.dtype
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    # a Transpose of its own here: merged into that before it, k would move behind v
    order = [*range(len(k.shape))]
    transposed = emit("Transpose", k, perm=[*order[:-2], order[-1], order[-2]])
    scores = emit("MatMul", emit("Mul", q, np.asarray(scale, kind)), transposed)
    if softcap > 0:
        cap = np.asarray(softcap, kind)
        scores = emit("Mul", emit("Tanh", emit("Div", scores, cap)), cap)
    low = np.asarray(-np.inf, kind)
    seen = causal(emit, q.shape[-2], k.shape[-2]) if is_causal else None
    if mask is not None and mask.dtype.kind == "b":
        seen = mask if seen is None else emit("And", mask, seen)
    if seen is not None:
        scores = emit("Where", seen, scores, low)
    if mask is None:
        return emit("Softmax", scores, axis=-1)
    if mask.dtype.kind != "b":
        scores = emit("Add", scores, emit.cast(mask, kind))
    shares = emit("Softmax", scores, axis=-1)
    return emit("Where", emit("IsNaN", shares), np.asarray(0, kind), shares)


def causal(emit: Emitter, queries: Any, keys: Any) -> Any:
    """(T, S): True where query i sees key j, which is no later."""
    if not isinstance(queries, Size) and not isinstance(keys, Size):
        return emit.constant(np.tri(queries, keys) > 0)
    rows, columns = map(emit.counted, (queries, keys))
    return emit("LessOrEqual", columns, emit("Unsqueeze", rows, emit.ints([1])))


@writes("low_rank_add")
def low_rank_add(emit: Emitter, x: Any, b: Any, a: Any, *, scale: float) -> Any:
    """x + scale * b @ a"""
    product = emit("MatMul", b, a)
    if len(x.shape) != 2:
        product = emit.reshape(product, x.shape)
    return emit("Add", x, emit("Mul", product, np.asarray(scale, x.dtype)))
