"""Normalisation within one example. N batch, C channels, *S any further axes."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.tensor import Tensor


class LayerNorm(Layer):
    """(..., *normalized_shape) -> the same shape, the last axes standardized"""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        shape = _shape(normalized_shape)
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = Param(init.ones, shape, dtype) if elementwise_affine else None
        has_bias = elementwise_affine and bias
        self.bias = Param(init.zeros, shape, dtype) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        axis = -len(_normalized(self, x))
        return ops.layer_norm_from(x, self.weight, self.bias, axis=axis, eps=self.eps)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.elementwise_affine else text.replace(", bias=False", "")


class RMSNorm(Layer):
    """(..., *normalized_shape) -> the same shape, divided by its root mean square

    eps None is the smallest step of the input's dtype, as in PyTorch.
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = "float32",
    ):
        shape = _shape(normalized_shape)
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = Param(init.ones, shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        axis = -len(_normalized(self, x))
        eps = self.eps
        if eps is None:
            eps = float(self.device.xp.finfo(x.dtype).eps)
        return ops.rms_norm_from(x, self.weight, axis=axis, eps=eps)


class GroupNorm(Layer):
    """(N, num_channels, *S) -> the same shape, each group of channels standardized"""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        if num_channels % num_groups:
            raise InputError(
                f"GroupNorm: expected num_channels as a multiple of "
                f"num_groups={num_groups}, got {num_channels}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = Param(init.ones, (num_channels,), dtype) if affine else None
        has_bias = affine and bias
        self.bias = Param(init.zeros, (num_channels,), dtype) if has_bias else None

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.affine else text.replace(", bias=False", "")

    def forward(self, x: Tensor) -> Tensor:
        groups = self.num_groups
        if len(x.shape) < 2 or x.shape[1] != self.num_channels:
            raise InputError(
                f"GroupNorm: expected x with {self.num_channels} channels in axis 1, "
                f"got shape {x.shape}"
            )
        return ops.group_norm(x, groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Layer):
    """(N, C, *S) -> x / (k + alpha * the mean square of `size` channels) ** beta"""

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ):
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        """Raises InputError unless x has 3 axes or more."""
        if len(x.shape) < 3:
            raise InputError(
                f"LocalResponseNorm: expected x (N, C, *S), got shape {x.shape}"
            )
        # PyTorch has the odd neighbour of an even size before, ONNX behind
        if self.size % 2:
            return self._norm(x)
        return ops.flip(self._norm(ops.flip(x, axis=1)), axis=1)

    def _norm(self, x: Tensor) -> Tensor:
        return ops.lrn(x, size=self.size, alpha=self.alpha, beta=self.beta, bias=self.k)


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        return (normalized_shape,)
    return tuple(normalized_shape)


def _normalized(layer: Any, x: Tensor) -> tuple[int, ...]:
    shape = _shape(layer.normalized_shape)
    if x.shape[-len(shape) :] != shape:
        raise InputError(
            f"{type(layer).__name__}: expected x with the last axes {shape}, "
            f"got shape {x.shape}"
        )
    return shape
