"""Activations that are 0 in a range or jump, and those that draw numbers."""

from __future__ import annotations

from math import inf

from burnish import ops
from burnish.backend import Device
from burnish.draws import uniform
from burnish.errors import InputError
from burnish.nn.core.layer import Layer
from burnish.tensor import Tensor


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


class Tanhshrink(Layer):
    """x - tanh(x)"""

    def forward(self, x: Tensor) -> Tensor:
        return x - ops.tanh(x)


class Threshold(Layer):
    """`value` where x <= threshold, x elsewhere"""

    def __init__(self, threshold: float, value: float):
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return ops.threshold(x, threshold=self.threshold, value=self.value)


class ThresholdedReLU(Layer):
    """x where x > alpha, 0 elsewhere"""

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return ops.thresholded_relu(x, alpha=self.alpha)


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
