"""Attention of a step as one operator.

In half precision it is one kernel, its gradients are one or two; in single precision
it is products and a softmax that have the scale and the mask in them. The kernels do
heads of like numbers and sizes, whatever the mask; for anything else `attention` gives
None, and in single precision where no gradient is asked for: nothing is kept then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend.cuda.attention.attention import (
    are_alike,
    attended_for_gradient,
    attention_gradient,
)
from burnish.backend.cuda.layout import contiguous
from burnish.backend.cuda.products.matrices import described
from burnish.operator import Operator, explained
from burnish.ops.arrays.reduce import reduce_sum
from burnish.ops.arrays.shape import swapaxes
from burnish.ops.linalg.linear import matmul
from burnish.ops.sequences.attention import attention_weights


def _attended(
    q: Any, k: Any, v: Any, mask: Any, *, scale: float, is_causal: bool
) -> Any:
    """Attention, and what its gradients read beside it; None for no kernel."""
    found = attended_for_gradient(q, k, v, mask, scale, is_causal)
    return (None, None) if found is None else found


attended: Operator[..., Any, Any] = Operator(_attended)
attended.takes_bfloat16.add("cupy")


def _by_kernels(
    g: Any,
    y: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    *,
    scale: float,
    is_causal: bool,
) -> Any:
    if g[1] is not None or g[0].dtype != q.dtype:
        return NotImplemented
    found = attention_gradient(g[0], y[0], y[1], q, k, v, mask, scale, is_causal)
    return NotImplemented if found is None else found


def _by_operators(
    g: Any,
    y: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    *,
    scale: float,
    is_causal: bool,
) -> Any:
    slope = g[0]
    weights = attention_weights(q, k, mask, is_causal=is_causal, scale=scale)
    inward = matmul(slope, swapaxes(v, -1, -2))
    level = reduce_sum(inward * weights, axes=-1, keepdims=True)
    scores = weights * (inward - level) * scale
    turned = swapaxes(scores, -1, -2), swapaxes(weights, -1, -2)
    return matmul(scores, k), matmul(turned[0], q), matmul(turned[1], slope)


attended.vjp("q", "k", "v", on="cupy", takes_bfloat16=True)(_by_kernels)
attended.vjp("q", "k", "v")(_by_operators)


@explained
def attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Variable | None:
    """`scaled_dot_product_attention` as one operator; None where no kernel does it."""
    if softcap > 0 or not all(isinstance(a, Variable) for a in (q, k, v)):
        return None
    mask = attn_mask
    if isinstance(mask, Variable):
        if mask.node is not None:
            return None
    elif mask is not None:
        return None
    if q.dtype == np.float32:
        if all(a.node is None for a in (q, k, v)) or not are_alike(q, k, v):
            return None
        q, k, v = map(_laid_out, (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    y: Variable | None = attended(q, k, v, mask, scale=scale, is_causal=is_causal)[0]
    return None if y is None or y.data is None else y


def _laid_out(x: Variable) -> Variable:
    """Heads whose matrices products read as they are; gradients have them so, too."""
    if described(x.data, x.shape[:-2]) is not None:
        return x
    return x.wrap(contiguous(x.data), x.device, x.node, x.index)
