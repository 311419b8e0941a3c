"""The layers of transformers. S source length, T target length, N batch, E d_model.

x is (T, N, E), or (N, T, E) with batch_first, or (T, E) for one example. Masks are as
in `MultiheadAttention`: booleans are True where a key takes no part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.nn.attention.cache import DecoderCache, MhaCache
from burnish.nn.attention.multihead import MultiheadAttention
from burnish.nn.choose import activation as chosen
from burnish.nn.core.layer import Layer
from burnish.nn.dropout import Dropout
from burnish.nn.linear import Linear
from burnish.nn.norms.layer_norm import LayerNorm
from burnish.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


class TransformerEncoderLayer(Layer):
    """src (S, N, E) -> (S, N, E): attention to itself, then a network at each place

    activation: a name that `nn.activation` knows, or a function. norm_first: norms
    before attention and network instead of behind. cache: an `MhaCache` that src
    continues.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        self.d_model = d_model
        self.nhead = nhead
        self.dim_feedforward = dim_feedforward
        self.layer_norm_eps = layer_norm_eps
        self.batch_first = batch_first
        self.norm_first = norm_first
        self.bias = bias
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = chosen(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
        cache: MhaCache | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.dropout1(
                self.self_attn(
                    x,
                    x,
                    x,
                    src_key_padding_mask,
                    False,
                    src_mask,
                    is_causal=is_causal,
                    cache=cache,
                )[0]
            )

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self._network(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self._network(x))

    def _network(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.activation(self.linear1(x)))
        return self.dropout2(self.linear2(hidden))


class TransformerDecoderLayer(Layer):
    """tgt (T, N, E), memory (S, N, E) -> (T, N, E)

    Attention to itself, attention to the memory, then a network at each place; the
    options are `TransformerEncoderLayer`'s. cache: a `DecoderCache` that tgt continues;
    after the first call it replaces the memory.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        def attention() -> MultiheadAttention:
            return MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
            )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.d_model = d_model
        self.nhead = nhead
        self.dim_feedforward = dim_feedforward
        self.layer_norm_eps = layer_norm_eps
        self.batch_first = batch_first
        self.norm_first = norm_first
        self.bias = bias
        self.self_attn = attention()
        self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm1, self.norm2, self.norm3 = norm(), norm(), norm()
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = chosen(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        own = cache.own if cache else None
        seen = cache.memory if cache else None
        context = None if seen else memory

        def attend(x: Tensor) -> Tensor:
            found, _ = self.self_attn(
                x,
                x,
                x,
                tgt_key_padding_mask,
                False,
                tgt_mask,
                is_causal=tgt_is_causal,
                cache=own,
            )
            return self.dropout1(found)

        def recall(x: Tensor) -> Tensor:
            found, _ = self.multihead_attn(
                x,
                context,
                context,
                memory_key_padding_mask,
                False,
                memory_mask,
                is_causal=memory_is_causal,
                cache=seen,
            )
            return self.dropout2(found)

        if self.norm_first:
            x = tgt + attend(self.norm1(tgt))
            x = x + recall(self.norm2(x))
            return x + self._network(self.norm3(x))
        x = self.norm1(tgt + attend(tgt))
        x = self.norm2(x + recall(x))
        return self.norm3(x + self._network(x))

    def _network(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.activation(self.linear1(x)))
        return self.dropout3(self.linear2(hidden))
