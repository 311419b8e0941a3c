"""Smooth activations and gates: ELU, GELU, SiLU, sigmoid, GLU and their variants."""

from __future__ import annotations

from burnish import ops
from burnish.errors import InputError
from burnish.nn.compared import is_above
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


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


class Tanhshrink(Layer):
    """x - tanh(x)"""

    def forward(self, x: Tensor) -> Tensor:
        return x - ops.tanh(x)


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


class GLU(Layer):
    """(..., 2 n, ...) -> (..., n, ...): one half times the sigmoid of the other"""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return ops.glu(x, axis=self.dim)


def _not_zero(expected: str, value: float) -> None:
    if value == 0:
        raise InputError(f"{expected} other than 0, got {value}")
