"""Transformers: stacks of layers. S source length, T target length, N batch, E d_model.

The shapes of x and of masks: see `burnish.nn.attention.transformer_layers`.
"""

from __future__ import annotations

from typing import Any

from burnish._engine.arguments import checked
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.attention.cache import DecoderCache, MhaCache
from burnish.nn.attention.transformer_layers import (
    Activation,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from burnish.nn.core.layer import Layer
from burnish.nn.core.module import Module
from burnish.nn.core.param import Param
from burnish.nn.norms.layer_norm import LayerNorm
from burnish.tensor import Tensor


class TransformerEncoder(Module):
    """src (S, N, E) -> (S, N, E): num_layers copies of a layer, then a norm

    The copies start with the layer's values, as in PyTorch. cache: what `new_cache`
    gave, for a sequence that src continues.
    """

    @checked
    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None
    ):
        self.layers = _copies(encoder_layer, num_layers)
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
        cache: list[MhaCache] | None = None,
    ) -> Tensor:
        for i, layer in enumerate(self.layers):
            more = {} if cache is None else {"cache": cache[i]}
            src = layer(src, mask, src_key_padding_mask, is_causal, **more)
        return src if self.norm is None else self.norm(src)

    def new_cache(self) -> list[MhaCache]:
        """An empty cache for every layer."""
        return [MhaCache() for _ in self.layers]


class TransformerDecoder(Module):
    """tgt (T, N, E), memory (S, N, E) -> (T, N, E): copies of a layer, then a norm

    The copies start with the layer's values, as in PyTorch. cache: what `new_cache`
    gave, for a sequence that tgt continues.
    """

    @checked
    def __init__(
        self, decoder_layer: Module, num_layers: int, norm: Module | None = None
    ):
        self.layers = _copies(decoder_layer, num_layers)
        self.norm = norm

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
        cache: list[DecoderCache] | None = None,
    ) -> Tensor:
        options = (
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )
        for i, layer in enumerate(self.layers):
            more = {} if cache is None else {"cache": cache[i]}
            tgt = layer(tgt, memory, *options, **more)
        return tgt if self.norm is None else self.norm(tgt)

    def new_cache(self) -> list[DecoderCache]:
        """An empty cache for every layer."""
        return [DecoderCache() for _ in self.layers]


class Transformer(Layer):
    """src (S, N, E), tgt (T, N, E) -> (T, N, E): an encoder and a decoder

    Weights of two axes and more are drawn as `init.xavier_uniform` does.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        self.d_model = d_model
        self.nhead = nhead
        self.num_encoder_layers = num_encoder_layers
        self.num_decoder_layers = num_decoder_layers
        self.dim_feedforward = dim_feedforward
        self.dropout = dropout
        self.activation = activation
        self.layer_norm_eps = layer_norm_eps
        self.batch_first = batch_first
        self.norm_first = norm_first
        self.bias = bias

        def stack(whole: Any, layer: Any, count: int) -> Any:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            made = whole(Module(), 0, norm)
            made.layers = [
                layer(
                    d_model,
                    nhead,
                    dim_feedforward,
                    dropout,
                    activation,
                    layer_norm_eps,
                    batch_first,
                    norm_first,
                    bias,
                    dtype,
                )
                for _ in range(count)
            ]
            return made

        self.encoder = custom_encoder or stack(
            TransformerEncoder, TransformerEncoderLayer, num_encoder_layers
        )
        self.decoder = custom_decoder or stack(
            TransformerDecoder, TransformerDecoderLayer, num_decoder_layers
        )
        _redraw(self)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Raises InputError where src or tgt do not end in d_model."""
        for name, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise InputError(
                    f"Transformer: expected {name} with a last axis of "
                    f"{self.d_model}, got shape {x.shape}"
                )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )


def _copies(layer: Module, count: int) -> list[Any]:
    return [layer.fork(layer.device) for _ in range(count)]


def _redraw(module: Module) -> None:
    draw = init.xavier_uniform()
    for _, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, Param) and value.ndim > 1:
                setattr(part, name, Param(draw, value.shape, value.dtype))
