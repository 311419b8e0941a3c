"""Attention in three kernels, for inference only."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda import cublaslt
from burnish.backend.cuda.rows import launch, takes


def attended(q: Any, k: Any, v: Any, mask: Any, scale: float, is_causal: bool) -> Any:
    """softmax(q @ k.mT * scale + mask) @ v, or None where no kernels do it.

    q (..., T, D), k (..., S, D), v (..., S, E), at most four axes; mask broadcasts to
    (..., T, S): booleans, True where a key takes part, or numbers to add.
    """
    if not 2 <= q.ndim <= 4 or not takes(q, k, v) or q.shape[:-2] != k.shape[:-2]:
        return None
    scores = cublaslt.matmul(q, k.swapaxes(-1, -2), scale=scale)
    if scores is None:
        return None
    shape = scores.shape
    kind, steps = "", (0, 0, 0, 0)
    if mask is not None:
        kind = "allowed" if mask.dtype == bool else "added"
        if mask.dtype not in (np.dtype(bool), q.dtype) or mask.ndim > len(shape):
            return None
        lead, size = len(shape) - mask.ndim, mask.itemsize
        for n, own in zip(shape[lead:], mask.shape, strict=True):
            if own not in (1, n):
                return None
        found = tuple(
            0 if n == 1 else step // size
            for n, step in zip(mask.shape, mask.strides, strict=True)
        )
        steps = (0,) * (4 - len(found)) + found
    heads = shape[-3] if len(shape) > 2 else 1
    rows, n = scores.size // shape[-1], shape[-1]
    done = launch(
        "attention_softmax",
        (rows, n, 1),
        (scores, scores),
        (scores if mask is None else mask, rows, n, heads, shape[-2], *steps),
        mask=kind,
        causal=is_causal,
    )
    return cublaslt.matmul(scores, v) if done else None
