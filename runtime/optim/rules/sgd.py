"""Stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from burnish.backend import Array
from burnish.errors import InputError
from burnish.optim.core.optimizer import State, check
from burnish.optim.rules.elementwise import Elementwise, less


@dataclass(eq=False, kw_only=True)
class SGD(Elementwise):
    """weight - rate * velocity;  velocity <- momentum * velocity + grad"""

    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check("SGD momentum", self.momentum, 0)
        check("SGD weight_decay", self.weight_decay, 0)
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise InputError(
                f"SGD nesterov: expected a momentum and no dampening, got "
                f"momentum={self.momentum}, dampening={self.dampening}"
            )

    def slots(self) -> tuple[str, ...]:
        return ("velocity",) if self.momentum else ()

    def kernel(self, state: State, rate: float) -> tuple[str, dict[str, Any]]:
        first = state["step"] == 1
        numbers = {
            "nesterov": self.nesterov,
            "has_decay": self.weight_decay != 0,
            "rate": rate,
            "momentum": self.momentum,
            "share": 1.0 if first else 1 - self.dampening,
            "decay": self.weight_decay,
        }
        return "sgd", numbers if self.momentum else {**numbers, "velocity": None}

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        if self.weight_decay:
            grad = grad + self.weight_decay * weight
        if self.momentum:
            velocity = state["velocity"]
            velocity *= self.momentum
            first = state["step"] == 1
            velocity += grad if first else (1 - self.dampening) * grad
            grad = grad + self.momentum * velocity if self.nesterov else velocity
        less(new, weight, grad, rate)
