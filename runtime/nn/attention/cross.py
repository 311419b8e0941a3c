"""Attention to a context of another size. N batch, T queries, S keys."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.attention.cache import MhaCache
from burnish.nn.attention.masks import beside
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.nn.dropout import Dropout
from burnish.nn.linear import Linear
from burnish.tensor import Tensor


class CrossAttention(Layer):
    """query (N, T, d_model), context (N, S, d_context) -> (N, T, d_model)

    n_heads_kv: heads of keys and values, each shared by n_heads / n_heads_kv queries'.
    quiet_softmax: a query may attend to nothing. A call takes mask (N, S), True where
    the context takes no part, and a cache, which after the first call replaces the
    context (None).
    """

    def __init__(
        self,
        d_model: int,
        d_context: int,
        n_heads: int,
        n_heads_kv: int,
        d_head: int,
        dropout: float = 0.1,
        quiet_softmax: bool = False,
        dtype: Any = "float32",
    ):
        if n_heads % n_heads_kv:
            raise InputError(
                f"CrossAttention: expected n_heads as a multiple of "
                f"n_heads_kv={n_heads_kv}, got {n_heads}"
            )
        self.d_model = d_model
        self.d_context = d_context
        self.n_heads = n_heads
        self.n_heads_kv = n_heads_kv
        self.d_head = d_head
        self.quiet_softmax = quiet_softmax

        def linear(ins: int, outs: int) -> Linear:
            made = Linear(ins, outs, dtype=dtype)
            draw = init.kaiming_uniform(gain=d_head**-0.5)
            made.weight = Param(draw, (outs, ins), dtype)
            return made

        self.query = linear(d_model, n_heads * d_head)
        self.key = linear(d_context, n_heads_kv * d_head)
        self.value = linear(d_context, n_heads_kv * d_head)
        self.output = linear(n_heads * d_head, d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        query: Tensor,
        context: Tensor | None = None,
        mask: Any = None,
        cache: MhaCache | None = None,
    ) -> Tensor:
        """Raises InputError without a context and without a cache that has one."""
        q = self._heads(self.query(query), self.n_heads // self.n_heads_kv)
        k, v = self._context(context, cache)
        kept = None
        if mask is not None:
            kept = ~beside(q, mask).reshape(q.shape[0], 1, 1, 1, -1)
        if self.quiet_softmax:
            scores = (q * self.d_head**-0.5) @ k.mT
            if kept is not None:
                scores = ops.where(kept, scores, -float("inf"))
            weights = ops.quiet_softmax(scores)
        else:
            weights = ops.attention_weights(q, k, kept)
        y = self.dropout(weights) @ v
        n, _, _, length, _ = y.shape
        return self.output(y.transpose(0, 3, 1, 2, 4).reshape(n, length, -1))

    def _context(
        self, context: Tensor | None, cache: MhaCache | None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values (N, n_heads_kv, 1, S, d_head)"""
        if cache is not None and len(cache):
            return cache.extend(None, None)
        if context is None:
            raise InputError("CrossAttention: expected a context, or a cache with one")
        k, v = self._heads(self.key(context)), self._heads(self.value(context))
        return (k, v) if cache is None else cache.extend(k, v)

    def _heads(self, x: Tensor, shared: int = 1) -> Tensor:
        """(N, length, heads * d_head) -> (N, n_heads_kv, shared, length, d_head)"""
        n, length, _ = x.shape
        parts = x.reshape(n, length, self.n_heads_kv, shared, self.d_head)
        return parts.transpose(0, 2, 3, 1, 4)
