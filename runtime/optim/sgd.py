"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.optim.optimizer import Optimizer, State, check, less


@dataclass(eq=False)
class SGD(Optimizer):
    """weight - rate * velocity;  velocity <- momentum * velocity + grad"""

    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        check("SGD momentum", self.momentum, 0)
        check("SGD weight_decay", self.weight_decay, 0)
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise InputError(
                f"SGD nesterov: expected a momentum and no dampening, got "
                f"momentum={self.momentum}, dampening={self.dampening}"
            )

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        if self.momentum:
            if "velocity" in state:
                velocity = state["velocity"]
                velocity *= self.momentum
                velocity += (1 - self.dampening) * grad if self.dampening else grad
            else:
                velocity = state["velocity"] = namespace(weight).array(grad)
            grad = grad + self.momentum * velocity if self.nesterov else velocity
        return less(weight, grad, rate)
