"""Activations as layers: any shape in, the same shape out."""

from __future__ import annotations

from typing import Any

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.compared import is_above
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.tensor import Tensor


class ReLU(Layer):
    """max(x, 0)"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.relu(x)


class ReLU6(Layer):
    """x held between 0 and 6"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.relu6(x)


class LeakyReLU(Layer):
    """x where x > 0, negative_slope * x elsewhere"""

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return ops.leaky_relu(x, negative_slope=self.negative_slope)


class PReLU(Layer):
    """x where x > 0, weight * x elsewhere; one weight, or one a channel (axis 1)"""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, dtype: Any = "float32"
    ):
        self.num_parameters = num_parameters
        self.init = init
        self.weight = _slopes(num_parameters, init, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Raises InputError for another number of channels."""
        slope: Tensor = self.weight
        if self.num_parameters > 1:
            if x.shape[1:2] != (self.num_parameters,):
                raise InputError(
                    f"PReLU: expected x with {self.num_parameters} channels in axis 1, "
                    f"got shape {x.shape}"
                )
            slope = slope.reshape(-1, *(1 for _ in x.shape[2:]))
        elif not x.shape:
            slope = slope.reshape(())
        return ops.prelu_of(x, slope)


class ELU(Layer):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere"""

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return ops.elu(x, alpha=self.alpha)


class CELU(Layer):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere"""

    def __init__(self, alpha: float = 1.0):
        _not_zero("CELU: expected alpha", alpha)
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return ops.celu(x, alpha=self.alpha)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_GAMMA = 1.0507009873554804934193349852946
"""In full, as PyTorch has them; ONNX's defaults are their float32 values."""


class SELU(Layer):
    """The ELU whose scale keeps activations standardized"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.selu(x, alpha=_SELU_ALPHA, gamma=_SELU_GAMMA)


class GELU(Layer):
    """x times the normal distribution's share below x; "tanh" for the cheaper form"""

    def __init__(self, approximate: str = "none"):
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return ops.gelu(x, approximate=self.approximate)


class SiLU(Layer):
    """x * sigmoid(x)"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.silu(x)


class Mish(Layer):
    """x * tanh(softplus(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.mish(x)


class Sigmoid(Layer):
    """1 / (1 + exp(-x))"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)


class LogSigmoid(Layer):
    """log(sigmoid(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.log_sigmoid(x)


class Tanh(Layer):
    """The hyperbolic tangent"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.tanh(x)


class Softsign(Layer):
    """x / (1 + |x|)"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.softsign(x)


class Softplus(Layer):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold"""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        _not_zero("Softplus: expected beta", beta)
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        if self.beta == 1 and self.threshold >= 20:  # equal in single precision
            return ops.softplus(x)
        z = x * self.beta
        return ops.where(
            is_above(z, self.threshold), x, ops.softplus(z) * (1 / self.beta)
        )


class Hardswish(Layer):
    """x * (x / 6 + 1/2 held between 0 and 1)"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.hard_swish(x)


class Hardsigmoid(Layer):
    """x / 6 + 1/2 held between 0 and 1"""

    def forward(self, x: Tensor) -> Tensor:
        return ops.hard_sigmoid(x, alpha=1 / 6, beta=0.5)


class Hardtanh(Layer):
    """x held between min_val and max_val"""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0):
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, x: Tensor) -> Tensor:
        return ops.hard_tanh(x, low=self.min_val, high=self.max_val)


class GLU(Layer):
    """(..., 2 n, ...) -> (..., n, ...): one half times the sigmoid of the other"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.glu(x, axis=self.dim)


class Softmax(Layer):
    """exp(x), scaled to add up to 1 along axis `dim`"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.softmax(x, axis=self.dim)


class Softmin(Layer):
    """softmax(-x) along axis `dim`"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.softmin(x, axis=self.dim)


class Softmax2d(Layer):
    """(N, C, H, W) or (C, H, W) -> the same shape: softmax over the channels"""

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) not in (3, 4):
            raise InputError(f"Softmax2d: expected 3 or 4 axes, got shape {x.shape}")
        return ops.softmax(x, axis=-3)


class LogSoftmax(Layer):
    """log(softmax(x)) along axis `dim`"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.log_softmax(x, axis=self.dim)


def _not_zero(expected: str, value: float) -> None:
    if value == 0:
        raise InputError(f"{expected} other than 0, got {value}")


def _slopes(count: int, value: float, dtype: Any) -> Param:
    return Param(init.constant(value), (count,), dtype)
