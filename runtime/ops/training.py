"""One step of an optimizer as a formula: what ONNX's training graphs contain.

x are the parameters, g their gradients, rate the learning rate, count how many steps
there were before. `burnish.optim` has the optimizers to train with.
"""

from __future__ import annotations

from typing import Any

from burnish.backend import Array
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops.elementwise.compare import where
from burnish.ops.elementwise.elementary import sqrt


@composed
def adagrad_step(
    x: Any,
    g: Any,
    h: Any,
    rate: Any,
    count: Any,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Array, Array]:
    """New (x, h); h is the sum of squared gradients."""
    g = _regularized(g, x, norm_coefficient)
    h = h + g * g
    rate = rate / (1 + count * decay_factor)
    return x - _like(rate, x) * g / (sqrt(h) + epsilon), h


@composed
def adam_step(
    x: Any,
    g: Any,
    v: Any,
    h: Any,
    rate: Any,
    count: Any,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Array, Array, Array]:
    """New (x, v, h); v and h are running means of gradients and of their squares."""
    g = _regularized(g, x, norm_coefficient)
    v = alpha * v + (1 - alpha) * g
    h = beta * h + (1 - beta) * (g * g)
    steps = where(count > 0, count, 1)
    corrected = rate * (1 - beta**steps) ** 0.5 / (1 - alpha**steps)
    step = _like(where(count > 0, corrected, rate), x)
    x = x - step * (v / (sqrt(h) + epsilon))
    return x * (1 - norm_coefficient_post) if norm_coefficient_post else x, v, h


@composed
def momentum_step(
    x: Any,
    g: Any,
    v: Any,
    rate: Any,
    count: Any,
    *,
    alpha: float,
    beta: float,
    norm_coefficient: float = 0.0,
    mode: str = "standard",
) -> tuple[Array, Array]:
    """New (x, v); v is the running sum of gradients. mode: "standard", "nesterov"."""
    if mode not in ("standard", "nesterov"):
        raise InputError(
            f"momentum_step: expected mode 'standard' or 'nesterov', got {mode!r}"
        )
    g = _regularized(g, x, norm_coefficient)
    v = alpha * v + _like(where(count > 0, beta, 1.0), x) * g
    ahead = v if mode == "standard" else g + alpha * v
    return x - _like(rate, x) * ahead, v


def _regularized(g: Any, x: Any, coefficient: float) -> Any:
    return g + coefficient * x if coefficient else g


def _like(number: Any, x: Any) -> Any:
    """An array of one number in x's dtype; Python's numbers have it anyway."""
    return number.astype(x.dtype) if hasattr(number, "dtype") else number
