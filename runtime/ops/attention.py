"""Attention. T queries, S keys and values, D their size, E the values' size."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Variable, recording
from burnish.backend import Array, namespace
from burnish.backend.cuda.attention.attention import attended
from burnish.errors import InputError
from burnish.operator import composed, memory_bound, operator
from burnish.ops._shapes import cast, library_of, ranked, values
from burnish.ops._tables import beside
from burnish.ops.activation import softmax, softmax_gradient
from burnish.ops.compare import where
from burnish.ops.elementary import tanh
from burnish.ops.linear import matmul
from burnish.ops.shape import reshape, swapaxes


@composed
def scaled_dot_product_attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Array:
    """softmax(q @ k.T * scale + attn_mask) @ v

    q (..., T, D), k (..., S, D), v (..., S, E).
    attn_mask: booleans, True where a key takes part, or numbers to add; broadcasts to
    (..., T, S). A query that no key takes part for gets 0. is_causal: query i sees the
    keys up to i. scale: 1 / sqrt(D) unless given. softcap > 0 holds scores between
    -softcap and softcap. q may have a multiple of k's and v's heads (axis -3). NumPy
    multiplies half precision slowly and rounds every step: single precision takes over.
    """
    if q.dtype == np.float16 and library_of(q) is np:
        wide_q, wide_k, wide_v = (cast(part, dtype=np.float32) for part in (q, k, v))
        options: dict[str, Any] = {"is_causal": is_causal, "scale": scale}
        options["softcap"] = softcap
        y = scaled_dot_product_attention(wide_q, wide_k, wide_v, attn_mask, **options)
        return cast(y, dtype=q.dtype)
    heads = q.shape
    if (y := _by_kernels(q, k, v, attn_mask, is_causal, scale, softcap)) is not None:
        return y
    shared = _sharing(q, k)
    if shared > 1:
        *lead, count, t, size = q.shape
        q = reshape(q, shape=(*lead, count // shared, shared, t, size))
        k, v = (_spread(part) for part in (k, v))
        attn_mask = _grouped(attn_mask, shared)
    weights = attention_weights(
        q, k, attn_mask, is_causal=is_causal, scale=scale, softcap=softcap
    )
    y = matmul(weights, v)
    return y if shared == 1 else reshape(y, shape=(*heads[:-1], v.shape[-1]))


@composed
def attention_weights(
    q: Any,
    k: Any,
    mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
) -> Array:
    """Attention weights of each query over the values: (..., T, S), rows sum to 1"""
    ranked("attention: q", q, -2)
    ranked("attention: k", k, -2)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = matmul(q * scale, swapaxes(k, -1, -2))
    if softcap > 0:
        scores = tanh(scores * (1 / softcap)) * softcap
    if is_causal:
        causal = np.tri(*scores.shape[-2:]) > 0
        scores = where(beside(scores, causal), scores, -np.inf)
    if mask is None:
        return softmax(scores, axis=-1)
    allowed = mask.dtype == bool
    scores = where(mask, scores, -np.inf) if allowed else scores + mask
    return softmax_or_zero(scores)


@memory_bound
@operator
def softmax_or_zero(x) -> Array:
    """softmax along the last axis, but 0 for rows where every score is -inf"""
    blocked = x.max(axis=-1, keepdims=True) == -np.inf
    if namespace(x) is np and not blocked.any():
        return softmax(x, axis=-1)
    return where(blocked, 0, softmax(where(blocked, 0, x), axis=-1))


@softmax_or_zero.vjp
def _(g, y, x):
    return softmax_gradient(g, y, -1)


def _by_kernels(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    is_causal: bool,
    scale: float | None,
    softcap: float,
) -> Any:
    """Attention in few kernels where nothing is recorded; None where that is not so."""
    if not _has_kernel(q) or softcap > 0 or recording.tape is not None:
        return None
    given = [a for a in (q, k, v, mask) if a is not None]
    if any(isinstance(a, Variable) and a.node is not None for a in given):
        return None
    ranked("attention: q", q, -2)
    ranked("attention: k", k, -2)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    shown = None if mask is None else values(mask)
    kernels = attended
    if library_of(q) is np:
        from burnish.kernels.attention import attended as kernels
    y = kernels(values(q), values(k), values(v), shown, scale, is_causal)
    if y is None or not isinstance(q, Variable):
        return y
    return q.wrap(y, q.device)


def _has_kernel(q: Any) -> bool:
    """Whether q is on a GPU, or the library was built before."""
    from burnish.kernels import direct

    return library_of(q) is not np or direct.usable() is not None


def _sharing(q: Any, k: Any) -> int:
    """How many heads of q share one of k."""
    if len(q.shape) < 3 or len(k.shape) < 3 or k.shape[-3] in (1, q.shape[-3]):
        return 1
    if q.shape[-3] % k.shape[-3]:
        raise InputError(
            f"scaled_dot_product_attention: expected q's heads as a multiple of k's, "
            f"got {q.shape[-3]} and {k.shape[-3]}"
        )
    return int(q.shape[-3] // k.shape[-3])


def _spread(part: Any) -> Any:
    """(..., heads, S, D) -> (..., heads, 1, S, D)"""
    return reshape(part, shape=(*part.shape[:-2], 1, *part.shape[-2:]))


def _grouped(mask: Any, shared: int) -> Any:
    """A mask's axis of heads split as q's is."""
    if mask is None or len(mask.shape) < 3:
        return mask
    *lead, count, t, s = mask.shape
    shape = (count, 1) if count == 1 else (count // shared, shared)
    return reshape(mask, shape=(*lead, *shape, t, s))
