"""L-BFGS: curvature from the last steps, for losses that can be computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from burnish.autodiff import Variable, backward
from burnish.backend import Array, Device
from burnish.errors import InputError, RecordError
from burnish.nn import Module
from burnish.nn.core.param import Param
from burnish.optim.core.gradients import GradientsParams
from burnish.optim.core.optimizer import Rule, check
from burnish.optim.rules.line_search import Point, strong_wolfe

_ARRAYS = ("direction", "gradient", "steps", "changes")
_NUMBERS = ("iterations", "length")


@dataclass(eq=False, kw_only=True)
class LBFGS(Rule):
    """Newton's method with a Hessian that the last `history_size` steps tell of.

    It asks for the loss several times a step, so it takes a function instead of
    gradients: `optimizer.step(1.0, model, lambda: loss(model(x), y))`.

    max_iter, max_eval: iterations and losses a step (max_eval None: 5/4 max_iter).
    tolerance_grad, tolerance_change: a step ends where gradient or change is smaller.
    line_search_fn: "strong_wolfe", or None to always go the learning rate's length.
    """

    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search_fn: str | None = None
    clip: Callable[[GradientsParams], GradientsParams] | None = None
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check("LBFGS max_iter", self.max_iter, 1)
        check("LBFGS history_size", self.history_size, 1)
        if self.line_search_fn not in (None, "strong_wolfe"):
            raise InputError(
                f"LBFGS line_search_fn: expected 'strong_wolfe' or None, "
                f"got {self.line_search_fn!r}"
            )

    def step(
        self, learning_rate: float, module: Module, closure: Callable[[], Any]
    ) -> float:
        """Bring the module's parameters closer to a minimum, in place.

        closure: computes the loss anew, a recorded tensor of one element. Returns the
        loss before the step.
        """
        self._check_module(module)
        if not callable(closure):
            raise InputError(
                f"LBFGS.step: expected a function that computes the loss, "
                f"got a {type(closure).__name__}"
            )
        with module.device.computing():
            return self._step(learning_rate, _Loss(module, closure, self.clip))

    def _step(self, learning_rate: float, loss: _Loss) -> float:
        here = loss.now()
        first = here.value
        if float(abs(here.gradient).max()) <= self.tolerance_grad:
            return first
        allowed = self.max_eval or self.max_iter * 5 // 4
        for i in range(self.max_iter):
            direction, length = self._aim(here.gradient, learning_rate)
            slope = float(here.gradient @ direction)
            if slope > -self.tolerance_change:
                break
            before = here
            if self.line_search_fn:
                wide = float(abs(direction).max())
                here = strong_wolfe(
                    loss.along(direction),
                    Point(0.0, before.value, before.gradient, slope),
                    length,
                    self.tolerance_change / wide,
                    max(allowed - loss.calls, 0),
                )
                length = here.length
                loss.move(direction, length)
            else:
                loss.move(direction, length)
                if i < self.max_iter - 1:  # nobody asks for the last one's loss
                    here = loss.now()
            self._memory["length"] = length
            change = length * float(abs(direction).max())
            if (
                loss.calls >= allowed
                or float(abs(here.gradient).max()) <= self.tolerance_grad
                or change <= self.tolerance_change
                or abs(here.value - before.value) < self.tolerance_change
            ):
                break
        return first

    def _aim(self, gradient: Array, rate: float) -> tuple[Array, float]:
        """The direction to go and how far to try; what came before is remembered."""
        memory = self._memory = _put(self._memory, Device.of(gradient))
        if not memory:
            memory |= {"iterations": 0, "steps": [], "changes": []}
            direction = -gradient
            length = min(1.0, 1.0 / float(abs(gradient).sum())) * rate
        else:
            if memory["gradient"].shape != gradient.shape:
                raise InputError(
                    f"LBFGS: expected the module of the last step, with "
                    f"{memory['gradient'].size} trainable values, got {gradient.size}"
                )
            change = gradient - memory["gradient"]
            step = memory["direction"] * memory["length"]
            if float(change @ step) > 1e-10:
                memory["steps"] = [*memory["steps"], step][-self.history_size :]
                memory["changes"] = [*memory["changes"], change][-self.history_size :]
            direction, length = self._newton(gradient), rate
        memory["iterations"] += 1
        memory |= {"gradient": gradient, "direction": direction, "length": length}
        return direction, length

    def _newton(self, gradient: Array) -> Array:
        """The two loops of L-BFGS: - inverse Hessian @ gradient"""
        steps, changes = self._memory["steps"], self._memory["changes"]
        pairs = [
            (s, y, 1.0 / float(y @ s)) for s, y in zip(steps, changes, strict=True)
        ]
        q, parts = -gradient, []
        for s, y, share in reversed(pairs):
            parts.append(float(s @ q) * share)
            q -= parts[-1] * y
        if pairs:
            _, y, share = pairs[-1]
            q *= 1.0 / (share * float(y @ y))
        for (s, y, share), part in zip(pairs, reversed(parts), strict=True):
            q += (part - float(y @ q) * share) * s
        return q

    def _named(self) -> dict[str, Array]:
        return {
            key: np.stack(value) if isinstance(value, list) else np.asarray(value)
            for key, value in _put(self._memory, Device("cpu")).items()
            if not (isinstance(value, list) and not value)
        }

    def _recall(self, state: Mapping[str, Array]) -> None:
        needed = {"iterations", "length", "direction", "gradient"}
        if state and not needed <= set(state):
            raise RecordError(f"LBFGS state: something is missing in {sorted(state)}")
        if unknown := sorted(set(state) - {*_ARRAYS, *_NUMBERS}):
            raise RecordError(f"LBFGS state: expected no {unknown[0]!r}")
        self._memory = dict(state)
        # Rows are copied: how an array is aligned can decide how a product rounds.
        if state:
            self._memory |= {
                "iterations": int(state["iterations"]),
                "length": float(state["length"]),
                "steps": [row.copy() for row in state.get("steps", ())],
                "changes": [row.copy() for row in state.get("changes", ())],
            }


def _put(memory: dict[str, Any], device: Device) -> dict[str, Any]:
    """The arrays on the device, numbers as they are."""
    return {
        key: [device.put(v) for v in value]
        if isinstance(value, list)
        else (device.put(value) if key in _ARRAYS else value)
        for key, value in memory.items()
    }


class _Loss:
    """A closure as a function of one flat vector, the module's trainable values."""

    def __init__(self, module: Module, closure: Callable[[], Any], clip: Any):
        self.params: dict[str, Param] = {
            path: param for path, param in module.named_parameters() if param.trainable
        }
        if not self.params:
            raise InputError(
                f"LBFGS: {type(module).__name__} has no trainable parameter"
            )
        self.closure, self.clip, self.calls = closure, clip, 0
        self.xp = next(iter(self.params.values())).device.xp

    def now(self) -> Point:
        """The loss and its gradient where the parameters are."""
        loss = self.closure()
        if not isinstance(loss, Variable):
            raise InputError(
                f"LBFGS: expected the closure to return the loss as a tensor, "
                f"got {type(loss).__name__}"
            )
        found = GradientsParams.of(backward(loss), self.params)
        found = found if self.clip is None else self.clip(found)
        parts = [
            found[path].ravel() if path in found else self.xp.zeros(param.size)
            for path, param in self.params.items()
        ]
        self.calls += 1
        dtype = self.xp.result_type(*(param.dtype for param in self.params.values()))
        gradient = self.xp.concatenate(parts).astype(dtype, copy=False)
        return Point(0.0, float(loss.data), gradient, 0.0)

    def move(self, direction: Array, length: float) -> None:
        """Every parameter by its part of length * direction."""
        start = 0
        for param in self.params.values():
            part = direction[start : start + param.size].reshape(param.shape)
            param.assign(param.data + length * part, param.dtype)
            start += param.size

    def along(self, direction: Array) -> Callable[[float], Point]:
        """The loss as a function of the length; the parameters stay where they are."""
        old = {path: param.data for path, param in self.params.items()}

        def at(length: float) -> Point:
            self.move(direction, length)
            point = self.now()
            for path, param in self.params.items():
                param.assign(old[path])
            slope = float(point.gradient @ direction)
            return Point(length, point.value, point.gradient, slope)

        return at
