"""Attention. N batch, T queries, S keys, E embed_dim."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.attention.cache import MhaCache
from burnish.nn.attention.masks import beside
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.nn.dropout import Dropout
from burnish.nn.linear import Linear
from burnish.ops.sequences.attention import dropped_attention
from burnish.tensor import Tensor


class MultiheadAttention(Layer):
    """query (T, N, E), key (S, N, kdim), value (S, N, vdim) -> (T, N, E), weights

    (N, T, E) and so on with batch_first; without N for one example. The weights are
    (N, T, S), the heads' mean, or (N, heads, T, S); None with need_weights=False.
    Masks as in PyTorch: booleans are True where a key takes no part, numbers are added.
    add_bias_kv: one more key and value, which are learned; add_zero_attn: one of zeros.
    is_causal without attn_mask: a query sees the keys up to its own, the last one all.
    cache: an `MhaCache`, for keys and values that come a few at a time (None: no new
    ones); masks then are as wide as all that it holds.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = "float32",
    ):
        if embed_dim % num_heads:
            raise InputError(
                f"MultiheadAttention: expected embed_dim as a multiple of "
                f"num_heads={num_heads}, got {embed_dim}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.bias = bias
        self.add_bias_kv = add_bias_kv
        self.add_zero_attn = add_zero_attn
        self.kdim = kdim
        self.vdim = vdim
        self.batch_first = batch_first
        draw = init.xavier_uniform()
        widths = self._widths
        if widths == (embed_dim,) * 3:
            self.in_proj_weight = Param(draw, (3 * embed_dim, embed_dim), dtype)
        else:
            self.q_proj_weight = Param(draw, (embed_dim, embed_dim), dtype)
            self.k_proj_weight = Param(draw, (embed_dim, widths[1]), dtype)
            self.v_proj_weight = Param(draw, (embed_dim, widths[2]), dtype)
        if bias:
            self.in_proj_bias = Param(init.zeros, (3 * embed_dim,), dtype)
        if add_bias_kv:
            self.bias_k = Param(init.xavier_normal(), (1, 1, embed_dim), dtype)
            self.bias_v = Param(init.xavier_normal(), (1, 1, embed_dim), dtype)
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)
        if bias:
            self.out_proj.bias = Param(init.zeros, (embed_dim,), dtype)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        cache: MhaCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Raises InputError for inputs or masks that do not go together."""
        single = len(query.shape) == 2
        self._check(query, key, value)
        parts: list[Any] = [
            part if part is None else self._batched(part, single)
            for part in self._projected(query, key, value)
        ]
        q, k, v = parts
        if cache is not None:
            k, v = cache.extend(k, v)
        length = k.shape[2]
        if is_causal and attn_mask is None:
            attn_mask = ~np.tri(q.shape[2], length, length - q.shape[2], dtype=bool)
        mask = self._mask(attn_mask, key_padding_mask, q, length)
        k, v = self._extended(k, "bias_k"), self._extended(v, "bias_v")
        mask = _widened(mask, k.shape[2] - length)
        weights: Any = None
        if need_weights:
            weights = ops.attention_weights(q, k, mask)
            drop = Dropout(self.dropout)
            drop.device = self.device
            weights = drop(weights)
            y = weights @ v
        elif self.training:
            y = dropped_attention(q, k, v, mask, p=self.dropout)
        else:
            y = ops.scaled_dot_product_attention(q, k, v, mask)
        y = y.transpose(0, 2, 1, 3)
        y = self.out_proj(y.reshape(*y.shape[:2], self.embed_dim))
        if not need_weights:
            weights = None
        elif average_attn_weights:
            weights = weights.mean(axis=1)
        if single:
            y, weights = y[0], weights if weights is None else weights[0]
        elif not self.batch_first:
            y = y.transpose(1, 0, 2)
        return y, weights

    @property
    def _widths(self) -> tuple[int, int, int]:
        """Of query, key and value."""
        embed = self.embed_dim
        return embed, self.kdim or embed, self.vdim or embed

    def _check(self, query: Tensor, key: Tensor | None, value: Tensor | None) -> None:
        batch = 0 if self.batch_first else 1
        rank = 2 if len(query.shape) == 2 else 3
        widths = self._widths
        fits = True
        for part, width in zip((query, key, value), widths, strict=True):
            if part is not None:
                fits &= len(part.shape) == rank and part.shape[-1] == width
                fits &= rank == 2 or part.shape[batch] == query.shape[batch]
        if fits and key is not None and value is not None:
            fits = key.shape[:-1] == value.shape[:-1]
        if not fits:
            axes = ("{}, {}", "N, {}, {}" if self.batch_first else "{}, N, {}")[
                rank - 2
            ]
            wanted = [
                f"({axes.format(*pair)})" for pair in zip("TSS", widths, strict=True)
            ]
            got = [None if p is None else p.shape for p in (query, key, value)]
            raise InputError(
                f"MultiheadAttention: expected query, key and value "
                f"{', '.join(wanted)}, got {', '.join(map(str, got))}"
            )

    def _projected(self, *parts: Any) -> list[Any]:
        if (made := self._by_adapters(*parts)) is not None:
            return made
        biases = ops.split(self.in_proj_bias, num=3) if self.bias else (None,) * 3
        if len({*self._widths}) == 1:
            weights = ops.split(self.in_proj_weight, num=3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return [
            None if part is None else ops.linear(part, weight, bias)
            for part, weight, bias in zip(parts, weights, biases, strict=True)
        ]

    def _by_adapters(self, query: Any, key: Any, value: Any) -> list[Any] | None:
        """Attention of x to itself whose adapters train, without the weight's gradient.

        None where there is no such way.
        """
        is_one = query is key is value and len({*self._widths}) == 1
        weight: Any = self.in_proj_weight if is_one else None
        made = weight.product(query, False) if is_one and weight.derived else None
        if made is None:
            return None
        made = made + self.in_proj_bias if self.bias else made
        return [*ops.split(made, num=3, axis=-1)]

    def _batched(self, x: Tensor, single: bool) -> Tensor:
        """The heads apart: (N, heads, length, E / heads)"""
        if single:
            x = x.reshape(1, *x.shape)
        elif not self.batch_first:
            x = x.transpose(1, 0, 2)
        n, length, _ = x.shape
        size = self.embed_dim // self.num_heads
        return x.reshape(n, length, self.num_heads, size).transpose(0, 2, 1, 3)

    def _extended(self, x: Tensor, learned: str) -> Tensor:
        """Keys or values (N, heads, S, E / heads) with those that no input gave."""
        n, heads, _, size = x.shape
        more = []
        if self.add_bias_kv:
            row = getattr(self, learned).reshape(1, heads, 1, size)
            more.append(ops.expand(row, shape=(n, heads, 1, size)))
        if self.add_zero_attn:
            more.append(Tensor.zeros(n, heads, 1, size, dtype=x.dtype, device=x.device))
        return ops.concat([x, *more], axis=2) if more else x

    def _mask(self, attn: Any, padding: Any, q: Tensor, length: int) -> Any:
        """Both masks as one to add or to keep by: (N, heads, T, S)"""
        if attn is None and padding is None:
            return None
        sizes = n, heads, queries, _ = (*q.shape[:3], length)
        masks = []
        if attn is not None:
            attn = beside(q, attn)
            if attn.shape == (n * heads, queries, length):
                attn = attn.reshape(*sizes)
            elif not _broadcasts(attn.shape, sizes):
                raise InputError(
                    f"MultiheadAttention: expected attn_mask {(queries, length)} or "
                    f"{(n * heads, queries, length)}, got {attn.shape}"
                )
            masks.append(attn)
        if padding is not None:
            padding = beside(q, padding)
            if padding.shape not in ((n, length), (length,) * (n == 1)):
                raise InputError(
                    f"MultiheadAttention: expected key_padding_mask {(n, length)}, "
                    f"got {padding.shape}"
                )
            masks.append(padding.reshape(-1, 1, 1, length))
        if all(mask.dtype == bool for mask in masks):
            return functools.reduce(operator.and_, map(ops.logical_not, masks))
        kind = q.dtype.type
        hidden, seen = kind(-np.inf), kind(0)
        added = (
            ops.where(each, hidden, seen) if each.dtype == bool else each
            for each in masks
        )
        return functools.reduce(operator.add, added)


def _widened(mask: Any, count: int) -> Any:
    """A mask with `count` more keys, which all take part."""
    if mask is None or not count:
        return mask
    pads = ((0, 0),) * (len(mask.shape) - 1) + ((0, count),)
    return ops.pad(mask, pads, constant_values=mask.dtype.type(mask.dtype == bool))


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to `target`."""
    ends = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(a in (1, b) for a, b in ends)
