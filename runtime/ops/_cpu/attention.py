"""Attention whose gradients are recorded, by kernels that keep no matrix of scores."""

from __future__ import annotations

import numpy as np

from burnish.ops._cpu.call import suits
from burnish.ops.sequences import attention


@attention.attended_heads.on("numpy")
def _(q, k, v, mask=None, keep=None, *, scale, is_causal, keep_factor=1.0):
    from burnish.kernels.attention import attended, fits

    if not fits(q, k, v, mask):
        options = {"scale": scale, "is_causal": is_causal, "keep_factor": keep_factor}
        return attention.attended_heads.value(q, k, v, mask, keep, **options)
    kept = np.empty((*q.shape[:-1], 2), np.float32)
    y = attended(q, k, v, mask, scale, is_causal, kept, keep, keep_factor)
    return y, kept


@attention.attended_heads.vjp("q", "k", "v", on="numpy")
def _(g, y, q, k, v, mask=None, keep=None, *, scale, is_causal, keep_factor=1.0):
    from burnish.kernels.attention import attention_gradient, fits

    known = g[1] is None and suits(g[0], y[0]) and fits(q, k, v, mask)
    if not known:
        return NotImplemented
    return attention_gradient(
        g[0], y[0], y[1], q, k, v, mask, scale, is_causal, keep, keep_factor
    )
