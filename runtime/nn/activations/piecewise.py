"""Activations that are linear in pieces: ReLU and its variants, Hardtanh, shrinkage."""

from __future__ import annotations

from math import inf
from typing import Any

from burnish import ops
from burnish.backend import Device
from burnish.draws import uniform
from burnish.errors import InputError
from burnish.nn import init
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


class RReLU(Layer):
    """x where x > 0, slope * x elsewhere

    In training each element's slope is drawn from [lower, upper), else it is the mean.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3):
        if not lower <= upper < inf:
            raise InputError(f"RReLU: expected lower <= upper, got {lower} and {upper}")
        self.lower = lower
        self.upper = upper

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return ops.leaky_relu(x, negative_slope=(self.lower + self.upper) / 2)
        ends, device = (self.lower, self.upper), Device(x.device)
        return ops.prelu_of(x, uniform(x.shape, *ends, x.dtype, device))


class ThresholdedReLU(Layer):
    """x where x > alpha, 0 elsewhere"""

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return ops.thresholded_relu(x, alpha=self.alpha)


class Threshold(Layer):
    """`value` where x <= threshold, x elsewhere"""

    def __init__(self, threshold: float, value: float):
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return ops.threshold(x, threshold=self.threshold, value=self.value)


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


class Hardshrink(Layer):
    """x where |x| > lambd, 0 elsewhere"""

    def __init__(self, lambd: float = 0.5):
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        return ops.shrink(x, lambd=self.lambd)


class Softshrink(Layer):
    """x brought `lambd` nearer to 0 where |x| > lambd, 0 elsewhere"""

    def __init__(self, lambd: float = 0.5):
        self.lambd = lambd

    def forward(self, x: Tensor) -> Tensor:
        return ops.shrink(x, bias=self.lambd, lambd=self.lambd)


class Shrink(Layer):
    """x brought `bias` nearer to 0 where |x| > lambd, 0 elsewhere"""

    def __init__(self, lambd: float = 0.5, bias: float = 0.0):
        self.lambd = lambd
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        return ops.shrink(x, bias=self.bias, lambd=self.lambd)


def _slopes(count: int, value: float, dtype: Any) -> Param:
    return Param(init.constant(value), (count,), dtype)
