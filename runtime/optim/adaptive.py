"""RMSprop and Adagrad: each element has its own rate."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.backend import Array, namespace
from burnish.optim.optimizer import Optimizer, State, check, count, less


@dataclass(eq=False)
class RMSprop(Optimizer):
    """weight - rate * grad / (sqrt(square) + epsilon)

    square is a running average of grad ** 2, less the average gradient's when centered.
    """

    alpha: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    def __post_init__(self) -> None:
        check("RMSprop alpha", self.alpha, 0, 1)
        check("RMSprop epsilon", self.epsilon, 0)
        check("RMSprop weight_decay", self.weight_decay, 0)
        check("RMSprop momentum", self.momentum, 0)

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        xp = namespace(weight)
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        spread = _average(state, "square", grad * grad, self.alpha)
        if self.centered:
            mean = _average(state, "mean", grad, self.alpha)
            spread = spread - mean * mean
        change = grad / (xp.sqrt(spread) + self.epsilon)
        if self.momentum:
            velocity = state.setdefault("velocity", xp.zeros_like(grad))
            velocity *= self.momentum
            velocity += change
            change = velocity
        return less(weight, change, rate)


def _average(state: State, key: str, value: Array, alpha: float) -> Array:
    if key not in state:
        state[key] = namespace(value).zeros_like(value)
    average = state[key]
    average *= alpha
    average += (1 - alpha) * value
    return average


@dataclass(eq=False)
class Adagrad(Optimizer):
    """weight - rate * grad / (sqrt(square) + epsilon), square the sum of grad ** 2

    rate_decay: the rate of step n is rate / (1 + (n - 1) * rate_decay).
    """

    rate_decay: float = 0.0
    weight_decay: float = 0.0
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        check("Adagrad rate_decay", self.rate_decay, 0)
        check("Adagrad weight_decay", self.weight_decay, 0)
        check("Adagrad epsilon", self.epsilon, 0)

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        xp, step = namespace(weight), count(state)
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        square = state.setdefault("square", xp.zeros_like(grad))
        square += grad * grad
        rate = rate / (1 + (step - 1) * self.rate_decay)
        return less(weight, grad / (xp.sqrt(square) + self.epsilon), rate)
