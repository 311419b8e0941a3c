"""Attention by one kernel, without the matrix of scores, where nothing is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels import direct
from burnish.kernels.forms import attention_room

_FEW = 1 << 16
"""Products below which a call of the kernel costs more than it spares."""


def attended(q: Any, k: Any, v: Any, mask: Any, scale: float, is_causal: bool) -> Any:
    """softmax(q @ k.T * scale, masked) @ v, or None where the kernel does not fit

    q (..., H, T, D), k (..., G, S, D), v (..., G, S, E), with H a multiple of G; the
    mask broadcasts to (..., H, T, S). One axis before the heads at most.
    """
    if any(a.dtype != np.float32 for a in (q, k, v)) or not 2 <= q.ndim <= 4:
        return None
    q4, k4, v4 = (a.reshape((1,) * (4 - a.ndim) + a.shape) for a in (q, k, v))
    (batches, heads, queries, size), (groups, keys) = q4.shape, k4.shape[1:3]
    if batches * heads * queries * keys * size < _FEW or direct.usable() is None:
        return None
    values = v4.shape[3]
    if k4.shape != (batches, groups, keys, size) or heads % groups:
        return None
    if v4.shape != (batches, groups, keys, values) or not q.ndim == k.ndim == v.ndim:
        return None
    shown = _mask(mask, is_causal, queries, keys)
    fields: dict[str, Any] = {"mask": None, "mask_is_bool": 0}
    fields |= {f"mask_{axis}": 0 for axis in ("batch", "head", "query", "key")}
    if shown is not None:
        full = (batches, heads, queries, keys)
        if shown.dtype not in (np.float32, np.bool_) or not _fits(
            shown, full[-q.ndim :]
        ):
            return None
        seen = np.broadcast_to(shown, full)
        steps = (step // shown.itemsize for step in seen.strides)
        fields |= zip(list(fields)[2:], steps, strict=True)
        fields |= {"mask": shown, "mask_is_bool": shown.dtype == np.bool_}
    for name, part in zip("qkv", (q4, k4, v4), strict=True):
        fields[name] = part = np.ascontiguousarray(part)
        _, _, rows, width = part.shape
        fields[f"{name}_batch"] = part[0].size
        fields[f"{name}_head"], fields[f"{name}_row"] = rows * width, width
    out = np.empty((*q.shape[:-1], values), np.float32)
    flops = 2 * batches * heads * queries * keys * (size + values)
    parts = min(direct.shares(flops / 8), batches * heads)
    room = attention_room(size, keys, values)
    direct.launch(
        "attention", parts, **fields, out=out, space=np.empty(parts * room, np.float32),
        batches=batches, heads=heads, shared=heads // groups, queries=queries,
        keys=keys, size=size, values=values, out_batch=heads * queries * values,
        out_head=queries * values, out_row=values, room=room,
        zero_if_empty=mask is not None, scale=scale, blocked=-np.inf,
    )  # fmt: skip
    return out


def _fits(mask: Any, shape: tuple[int, ...]) -> bool:
    """Whether a mask broadcasts to this shape, without more axes than it."""
    behind = shape[len(shape) - mask.ndim :]
    return len(behind) == mask.ndim and all(
        n in (1, size) for n, size in zip(mask.shape, behind, strict=True)
    )


def _mask(mask: Any, is_causal: bool, queries: int, keys: int) -> Any:
    """The mask, with the keys behind each query hidden where that is asked for."""
    if not is_causal:
        return mask if mask is None else np.asarray(mask)
    before = np.tri(queries, keys, dtype=bool)
    if mask is None:
        return before
    return mask & before if mask.dtype == bool else np.where(before, mask, -np.inf)
