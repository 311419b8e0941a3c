"""The base of all optimizers: one update rule for one parameter, state by path."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Self, TypeAlias

import numpy as np

from burnish import serialize
from burnish.autodiff import Gradients
from burnish.backend import Array, namespace
from burnish.errors import InputError, RecordError
from burnish.nn import Module
from burnish.nn.param import Param
from burnish.optim.gradients import GradientsParams

State: TypeAlias = dict[str, Array]
"""What a rule remembers of one parameter: arrays that the optimizer alone owns."""

_COUNT = "step"


@dataclass(eq=False)
class Optimizer:
    """A rule that turns gradients into better parameters.

    clip: applied to all gradients before the update; `ClipNorm(1.0)` and its like.
    """

    _: KW_ONLY
    clip: Callable[[GradientsParams], GradientsParams] | None = None
    _state: dict[str, State] = field(default_factory=dict, init=False, repr=False)

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        """The new weight, in an array of its own; `state` is changed in place."""
        raise TypeError(f"{type(self).__name__} has no update rule")

    def step(
        self,
        learning_rate: float,
        module: Module,
        gradients: Gradients | GradientsParams,
    ) -> None:
        """Give the module's parameters their next values, in place.

        Parameters without a gradient stay as they are. Raises InputError for gradients
        that belong to no parameter.
        """
        if isinstance(gradients, Gradients):
            gradients = GradientsParams.from_grads(gradients, module)
        if self.clip is not None:
            gradients = self.clip(gradients)
        params = dict(module.named_parameters())
        if unknown := [path for path in gradients if path not in params]:
            raise InputError(
                f"optimizer: expected gradients of parameters of "
                f"{type(module).__name__}, got one for {unknown[0]!r}"
            )
        for path, gradient in gradients.items():
            self._update(path, params[path], gradient, learning_rate)

    def _update(self, path: str, param: Param, gradient: Array, rate: float) -> None:
        weight, put = param.data, param.device.put
        state = {
            key: array if key == _COUNT else put(array)
            for key, array in self._state.get(path, {}).items()
        }
        grad = put(gradient, weight.dtype)
        param.assign(self.update(weight, grad, state, rate))
        self._state[path] = state

    # --- records ---

    def state_dict(self) -> dict[str, Array]:
        """A copy of what the optimizer remembers: "fc1.weight.velocity" -> array."""
        return {name: array.copy() for name, array in self._named().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> Self:
        """Go on from a state of the same optimizer, on whatever device it was saved."""
        loaded: dict[str, State] = {}
        for name, array in state.items():
            path, dot, key = name.rpartition(".")
            if not dot:
                raise RecordError(
                    f"optimizer state: expected 'parameter.key', got {name!r}"
                )
            loaded.setdefault(path, {})[key] = np.array(array)
        self._state = loaded
        return self

    def save_file(self, path: str | os.PathLike[str]) -> None:
        """Write what the optimizer remembers to a safetensors file, atomically."""
        serialize.save_file(self._named(), path)

    def load_file(self, path: str | os.PathLike[str]) -> Self:
        """Go on from a file that `save_file` wrote."""
        return self.load_state_dict(serialize.load_file(path))

    def _named(self) -> dict[str, Array]:
        return {
            f"{path}.{key}": array
            for path, state in self._state.items()
            for key, array in state.items()
        }


def less(weight: Array, change: Array, rate: float) -> Array:
    """weight - rate * change, without an array in between."""
    xp = namespace(weight)
    made = xp.multiply(change, rate, out=xp.empty_like(weight))
    return xp.subtract(weight, made, out=made)


def count(state: State) -> int:
    """The number of this update, from 1; kept in `state`, always on the host."""
    steps = int(state.get(_COUNT, 0)) + 1
    state[_COUNT] = np.asarray(steps)
    return steps


def check(name: str, value: float, low: float, high: float = float("inf")) -> None:
    """Raise InputError unless low <= value < high."""
    if not low <= value < high:
        raise InputError(f"{name}: expected a value in [{low}, {high}), got {value}")
