"""Attention. T queries, S keys and values, D their size, E the values' size."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Variable, recording
from burnish.backend import Array, Device, namespace
from burnish.backend.cuda.attention.attention import attended
from burnish.draws import keep_mask
from burnish.errors import InputError
from burnish.operator import composed, memory_bound, operator
from burnish.ops._kernels.slopes import dropped
from burnish.ops._shapes import cast, library_of, ranked
from burnish.ops._tables import beside
from burnish.ops.activation.probabilities import softmax, softmax_gradient
from burnish.ops.arrays.reduce import reduce_sum
from burnish.ops.arrays.shape import reshape, swapaxes
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import tanh
from burnish.ops.linalg.linear import matmul

LONG = 1 << 18
"""Pairs of a query and a key from which on a planned step computes scores again for its
gradients: with fewer of them, reading stored ones is up to a tenth of a step faster."""

LONG_CAUSAL = 1 << 15
"""The same where half of the pairs need no scores, but would be stored."""


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
    if q.dtype.char == "e" and library_of(q) is np:
        wide_q, wide_k, wide_v = (cast(part, dtype=np.float32) for part in (q, k, v))
        options: dict[str, Any] = {"is_causal": is_causal, "scale": scale}
        options["softcap"] = softcap
        y = scaled_dot_product_attention(wide_q, wide_k, wide_v, attn_mask, **options)
        return cast(y, dtype=q.dtype)
    heads = q.shape
    if (y := _by_kernels(q, k, v, attn_mask, is_causal, scale, softcap)) is not None:
        return y
    if _is_kept(q, k, v, attn_mask, is_causal, softcap):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        options = {"scale": float(scale), "is_causal": is_causal}
        return attended_heads(q, k, v, attn_mask, **options)[0]
    q, k, v, attn_mask = _grouped(q, k, v, attn_mask)
    weights = attention_weights(
        q, k, attn_mask, is_causal=is_causal, scale=scale, softcap=softcap
    )
    y = matmul(weights, v)
    if len(q.shape) == len(heads):
        return y
    return reshape(y, shape=(*heads[:-1], v.shape[-1]))


def dropped_attention(q: Any, k: Any, v: Any, mask: Any, *, p: float) -> Any:
    """`scaled_dot_product_attention` in training: a weight is 0 with probability p

    The others are divided by 1 - p. As many heads of q as of k.
    """
    if not p:
        return scaled_dot_product_attention(q, k, v, mask)
    device = q.device if isinstance(q, Variable) else Device.of(q)
    keep = keep_mask((*q.shape[:-1], k.shape[-2]), 1 - p, device)
    factor = 1 / (1 - p) if p < 1 else 1.0
    if not _is_kept(q, k, v, mask, False, 0.0):
        return matmul(dropped(attention_weights(q, k, mask), keep, factor=factor), v)
    options = {"scale": q.shape[-1] ** -0.5, "is_causal": False}
    return attended_heads(q, k, v, mask, keep, **options, keep_factor=factor)[0]


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
    scores = _scores(q, k, mask, scale, is_causal, softcap)
    return softmax(scores, axis=-1) if mask is None else softmax_or_zero(scores)


def _scores(
    q: Any, k: Any, mask: Any, scale: float, is_causal: bool, softcap: float = 0.0
) -> Any:
    scores = matmul(q * scale, swapaxes(k, -1, -2))
    if softcap > 0:
        scores = tanh(scores * (1 / softcap)) * softcap
    if is_causal:
        causal = np.tri(*scores.shape[-2:]) > 0
        scores = where(beside(scores, causal), scores, -np.inf)
    if mask is None:
        return scores
    allowed = mask.dtype == bool
    return where(mask, scores, -np.inf) if allowed else scores + mask


@operator
def attended_heads(
    q, k, v, mask=None, keep=None, *, scale: float, is_causal: bool,
    keep_factor: float = 1.0,
) -> tuple[Array, Array]:  # fmt: skip
    """Attention, and what its gradient needs of each query beside it: (..., T, 2)

    keep: dropout's mask of the weights, (..., T, S); kept ones are multiplied by
    keep_factor. What the gradient needs is the greatest score and the inverse of the
    sum of exponentials, from which kernels compute scores again. No gradient flows
    through them.
    """
    grouped, k, v, mask = _grouped(q, k, v, mask)
    scores = _scores(grouped, k, mask, scale, is_causal)
    most = scores.max(axis=-1, keepdims=True)
    blocked = np.isneginf(most) if mask is not None else np.zeros_like(most, bool)
    powers = np.exp(scores - np.where(blocked, 0, most))
    sums = powers.sum(axis=-1, keepdims=True)
    shares = np.where(blocked, 0, 1 / np.where(blocked, 1, sums))
    weights = powers * shares
    if keep is not None:
        weights = weights * (keep.reshape(weights.shape) * q.dtype.type(keep_factor))
    y = weights @ v
    kept = np.concatenate([np.where(blocked, 0, most), shares], axis=-1)
    shape = q.shape[:-1]
    return y.reshape(*shape, v.shape[-1]), kept.reshape(*shape, 2).astype(q.dtype)


@attended_heads.vjp("q", "k", "v")
def _(g, y, q, k, v, mask=None, keep=None, *, scale, is_causal, keep_factor=1.0):
    own, keys, values, mask = _grouped(q, k, v, mask)
    slope = reshape(g[0], shape=(*own.shape[:-1], v.shape[-1]))
    weights = attention_weights(own, keys, mask, is_causal=is_causal, scale=scale)
    inward = matmul(slope, swapaxes(values, -1, -2))
    used = weights
    if keep is not None:
        keep = reshape(keep, shape=weights.shape)
        used = dropped(weights, keep, factor=keep_factor)
        inward = dropped(inward, keep, factor=keep_factor)
    level = reduce_sum(inward * weights, axes=-1, keepdims=True)
    scores = weights * (inward - level) * scale
    return (
        reshape(matmul(scores, keys), shape=q.shape),
        _of_group(matmul(swapaxes(scores, -1, -2), own), k),
        _of_group(matmul(swapaxes(used, -1, -2), slope), v),
    )


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
    plain = []
    for given in (q, k, v, mask):
        if not isinstance(given, Variable):
            plain.append(given)
        elif given.node is not None:
            return None
        else:
            plain.append(given.data)
    ranked("attention: q", q, -2)
    ranked("attention: k", k, -2)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    kernels = attended
    if library_of(q) is np:
        from burnish.kernels.attention import attended as kernels
        from burnish.kernels.attention import fits

        plain[-1] = None if mask is None else np.asarray(plain[-1])
        if not fits(q, k, v, plain[-1]):
            return None
    queries, keys, own, shown = plain
    y = kernels(queries, keys, own, shown, scale, is_causal)
    if y is None or not isinstance(q, Variable):
        return y
    return q.wrap(y, q.device)


def _is_kept(
    q: Any, k: Any, v: Any, mask: Any, is_causal: bool, softcap: float
) -> bool:
    """Whether kernels give attention and its gradient without the scores."""
    if softcap > 0 or not all(isinstance(part, Variable) for part in (q, k, v)):
        return False
    tape = recording.tape
    if library_of(q) is not np or (tape is not None and not tape.is_step):
        return False
    least = LONG_CAUSAL if is_causal else LONG
    if tape is not None and q.shape[-2] * k.shape[-2] < least:
        return False
    if all(part.node is None for part in (q, k, v)) or recording.paused:
        return False
    if isinstance(mask, Variable) and mask.node is not None:
        return False
    from burnish.kernels.attention import fits

    return (mask is None or hasattr(mask, "dtype")) and fits(q, k, v, mask)


def _has_kernel(q: Any) -> bool:
    """Whether q is on a GPU, or the library was built before."""
    if library_of(q) is not np:
        return True
    from burnish.kernels import direct

    return direct.usable() is not None


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


def _grouped(q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any, Any, Any]:
    """Where heads of q share one of k: q (..., heads of k, those that share it, T, D),
    k and v with an axis for them, and the mask."""
    shared = _sharing(q, k)
    if shared == 1:
        return q, k, v, mask
    *lead, count, t, size = q.shape
    q = reshape(q, shape=(*lead, count // shared, shared, t, size))
    k, v = (
        reshape(part, shape=(*part.shape[:-2], 1, *part.shape[-2:])) for part in (k, v)
    )
    if mask is None or len(mask.shape) < 3:
        return q, k, v, mask
    *lead, count, t, s = mask.shape
    shape = (count, 1) if count == 1 else (count // shared, shared)
    return q, k, v, reshape(mask, shape=(*lead, *shape, t, s))


def _of_group(slope: Any, part: Any) -> Any:
    """The gradient of a head of keys or values: the sum of those of its queries."""
    is_spread = len(slope.shape) > len(part.shape)
    if is_spread or (len(part.shape) > 2 and part.shape[-3] != slope.shape[-3]):
        slope = reduce_sum(slope, axes=-3, keepdims=True)
    return reshape(slope, shape=part.shape)
