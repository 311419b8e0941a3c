"""Muon: momentum whose matrices are made orthogonal."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.optim.core.optimizer import Optimizer, State, check


@dataclass(eq=False, kw_only=True)
class Muon(Optimizer):
    """weight - rate * orthogonal(velocity), for matrices (rows, columns) alone

    A few Newton-Schulz iterations bring every singular value of the velocity near 1
    (https://kellerjordan.github.io/posts/muon/); they run in the weight's own
    precision. Other parameters want another optimizer: `ModuleOptimizer`.

    adjust_lr_fn: "original" multiplies the rate by sqrt(max(1, rows / columns)),
    "match_rms_adamw" by 0.2 * sqrt(max(rows, columns)), None is "original".
    """

    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check("Muon weight_decay", self.weight_decay, 0)
        check("Muon momentum", self.momentum, 0, 1)
        if self.adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise InputError(
                f"Muon adjust_lr_fn: expected 'original' or 'match_rms_adamw', "
                f"got {self.adjust_lr_fn!r}"
            )

    def slots(self) -> tuple[str, ...]:
        return ("velocity",)

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        if weight.ndim != 2:
            raise InputError(
                f"Muon: expected matrices, got a parameter of shape {weight.shape}; "
                f"give it another optimizer with ModuleOptimizer.with_group"
            )
        velocity = state["velocity"]
        velocity *= self.momentum
        velocity += (1 - self.momentum) * grad
        if self.nesterov:
            velocity = (1 - self.momentum) * grad + self.momentum * velocity
        change = self._orthogonal(velocity)
        change *= rate * self._adjustment(*weight.shape)
        return weight * (1 - rate * self.weight_decay) - change

    def _orthogonal(self, x: Array) -> Array:
        a, b, c = self.ns_coefficients
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / namespace(x).linalg.norm(x).clip(self.eps, None)
        for _ in range(self.ns_steps):
            square = x @ x.T
            x = a * x + (b * square + c * (square @ square)) @ x
        return x.T if tall else x

    def _adjustment(self, rows: int, columns: int) -> float:
        if self.adjust_lr_fn == "match_rms_adamw":
            return 0.2 * max(rows, columns) ** 0.5
        return max(1.0, rows / max(columns, 1)) ** 0.5
