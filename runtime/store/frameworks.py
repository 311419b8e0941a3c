"""The layouts of PyTorch, Burn, Keras and Flax.

out, in: channels; S: the kernel's axes. PyTorch and Burnish: Linear (out, in), Conv
(out, in, *S), ConvTranspose (in, out, *S). Keras and Flax keep channels last.
"""

from __future__ import annotations

from typing import Any

from burnish import nn
from burnish.store.layout import Layout, Move, Rule

_LINEAR = (nn.Linear,)
_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSE = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_BATCH = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_INSTANCE = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
_NORM = (*_BATCH, *_INSTANCE, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
_EMBEDDING = (nn.Embedding,)


def _swapped(array: Any, layer: Any) -> Any:
    """(a, b) -> (b, a), unless the layer keeps its weight so"""
    return array if array.ndim != 2 or layer.transposed else array.T


def _channels_first(array: Any, layer: Any) -> Any:
    """(*S, in, out) -> (out, in, *S); depthwise (*S, in, n) -> (in * n, 1, *S)"""
    rank = layer.weight.ndim
    if array.ndim != rank:
        return array
    groups = layer.groups
    if groups > 1 and array.shape[-2] == groups != layer.weight.shape[1]:
        first = array.transpose(rank - 2, rank - 1, *range(rank - 2))
        return first.reshape(-1, 1, *first.shape[2:])
    return array.transpose(rank - 1, rank - 2, *range(rank - 2))


def _channels_last(array: Any, layer: Any) -> Any:
    """(out, in, *S) -> (*S, in, out)"""
    return array.transpose(*range(2, array.ndim), 1, 0)


def _transpose_first(array: Any, layer: Any) -> Any:
    """(*S, out, in) -> (in, out, *S): a convolution's kernel, run backwards"""
    if array.ndim != layer.weight.ndim:
        return array
    return array.transpose(array.ndim - 1, array.ndim - 2, *range(array.ndim - 2))


def _flipped(move: Move) -> Move:
    """Flax's transposed convolution does not turn its kernel round, PyTorch's does."""

    def turned(array: Any, layer: Any) -> Any:
        if array.ndim != layer.weight.ndim:
            return array
        moved = move(array, layer).swapaxes(0, 1)
        return moved[:, :, *(slice(None, None, -1),) * (moved.ndim - 2)]

    return turned


def _flipped_last(array: Any, layer: Any) -> Any:
    """(in, out, *S) -> (*S, in, out), S turned round"""
    turned = array[:, :, *(slice(None, None, -1),) * (array.ndim - 2)]
    return turned.transpose(*range(2, array.ndim), 0, 1)


def _keras_name(name: str) -> str:
    """ "bn/moving_mean:0" -> "bn.moving_mean" """
    return name.removesuffix(":0").replace("/", ".")


def _flax_name(name: str) -> str:
    """ "batch_stats/bn/mean" -> "bn.mean" """
    name = name.replace("/", ".")
    for collection in ("params.", "batch_stats."):
        name = name.removeprefix(collection)
    return name


PYTORCH = Layout()
"""As it is: Burnish's names and layouts are PyTorch's."""

BURN = Layout(
    Rule(_LINEAR, "weight", "weight", _swapped, _swapped),
    Rule(_NORM, "weight", "gamma"),
    Rule(_NORM, "bias", "beta"),
)
"""Burn: Linear (in, out); norms have gamma and beta."""

KERAS = Layout(
    Rule(_LINEAR, "weight", "kernel", _swapped, _swapped),
    Rule(_CONV, "weight", "kernel", _channels_first, _channels_last),
    Rule(_TRANSPOSE, "weight", "kernel", _transpose_first, _channels_last),
    Rule(_EMBEDDING, "weight", "embeddings"),
    Rule((nn.RMSNorm,), "weight", "scale"),
    Rule(_NORM, "weight", "gamma"),
    Rule(_NORM, "bias", "beta"),
    Rule(_BATCH, "running_mean", "moving_mean"),
    Rule(_BATCH, "running_var", "moving_variance"),
    spelled=_keras_name,
)
"""Keras: kernels with channels last; gamma, beta, moving_mean, moving_variance."""

FLAX = Layout(
    Rule(_LINEAR, "weight", "kernel", _swapped, _swapped),
    Rule(_CONV, "weight", "kernel", _channels_first, _channels_last),
    Rule(_TRANSPOSE, "weight", "kernel", _flipped(_transpose_first), _flipped_last),
    Rule(_EMBEDDING, "weight", "embedding"),
    Rule(_NORM, "weight", "scale"),
    Rule(_BATCH, "running_mean", "mean"),
    Rule(_BATCH, "running_var", "var"),
    spelled=_flax_name,
)
"""Flax: kernels with channels last; scale, mean, var."""
