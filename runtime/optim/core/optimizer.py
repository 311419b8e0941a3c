"""The base of all optimizers: one update rule for one parameter, state by path."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from burnish._engine.arguments import replaced_by, uncalled
from burnish.autodiff import Gradients, Variable, recording
from burnish.backend import Array
from burnish.backend.cuda.elementwise import skips
from burnish.backend.cuda.graphs.live import value_of
from burnish.errors import ArgumentError, InputError, RecordError
from burnish.habits import missing
from burnish.nn import Module
from burnish.nn.core.param import Param
from burnish.optim.core.gradients import GradientsParams
from burnish.optim.core.rates import rates_of
from burnish.optim.core.remembered import Remembered

State: TypeAlias = dict[str, Any]
"""The optimizer state of one parameter: arrays, and "step", the steps so far."""

Update: TypeAlias = tuple[str, Param, Array, float]
"""A parameter's path, the parameter, its gradient and its learning rate."""

STEP_COUNT = "step"
"""The name of the count among the arrays of a state."""


STEP = "optimizer.step(1e-3, model, loss.backward())"
"""The usual call of a step, for messages."""


def _is_params(value: Any) -> bool:
    """Whether these are a module or its parameters, as other libraries take them."""
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, Module | Param | dict) or hasattr(value, "__next__")


class Rule(Remembered):
    """A class whose options have names; neither parameters nor a rate is one."""

    if not TYPE_CHECKING:  # checkers know what there is

        def __new__(cls, *args, **options):
            count = _in_order(cls)
            if "lr" in options:
                got = "lr"
            elif args and _is_params(args[0]):
                got = "parameters"
            elif len(args) > count:
                got = f"{args[count]!r} in order; options have names"
            elif error := uncalled(cls, args, options):
                raise error
            else:
                return super().__new__(cls)
            raise ArgumentError(
                f"{cls.__name__}: expected what the rule needs alone, got {got}; the "
                f"learning rate and the module are for step: {STEP}"
            )

    def _check_module(self, module: object) -> None:
        """Raise InputError for anything else that `step` is given as the module."""
        if not isinstance(module, Module):
            raise InputError(
                f"{type(self).__name__}.step: expected a module after the learning "
                f"rate, got a {type(module).__name__}"
            )


def _in_order(cls: type[Rule]) -> int:
    """How many arguments a constructor takes without their names."""
    words = inspect.signature(cls.__init__).parameters.values()
    return sum(word.kind is word.POSITIONAL_OR_KEYWORD for word in words) - 1  # self


class Turns:
    """A lock for those who change one state; copies of the state have another one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.take, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __reduce__(self) -> tuple[type[Turns], tuple[()]]:
        return Turns, ()


@dataclass(eq=False)
class Optimizer(Rule):
    """A rule that turns gradients into better parameters.

    clip: applied to all gradients before the update; `ClipNorm(1.0)` and its like.
    maximize: go up along the gradient instead of down.
    """

    _: KW_ONLY
    takes_half: ClassVar[bool] = False
    """Whether gradients come in half precision where a step left them in it."""

    clip: Callable[[GradientsParams], GradientsParams] | None = None
    maximize: bool = False
    _state: dict[str, State] = field(default_factory=dict, init=False, repr=False)
    turns: Turns = field(default_factory=Turns, init=False, repr=False)

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name):
            raise missing("Optimizer", name, dir(type(self)), type(self).__name__)

    def slots(self) -> tuple[str, ...]:
        """The arrays that `update` remembers: zeros of the weight's shape at first."""
        return ()

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        """The new weight, in an array of its own; `state` is changed in place.

        state["step"] counts from 1. Halves come as float32 and are rounded afterwards.
        """
        raise TypeError(f"{type(self).__name__} has no update rule")

    @replaced_by(STEP)
    def step(
        self,
        learning_rate: float,
        module: Module,
        gradients: Gradients | GradientsParams,
    ) -> None:
        """Give the module's parameters their next values, in place.

        learning_rate: one for all, or what `ModuleSchedule` gives for groups.
        Parameters without a gradient stay as they are. Raises InputError for gradients
        that belong to no parameter, and for a module that has none and cannot have.
        """
        self._check_module(module)
        tape = recording.tape
        if tape is not None and tape.is_step:
            found = _found(gradients, module)
            tape.update(_stepped, self, learning_rate, module, found)
            return
        if isinstance(gradients, Variable) or gradients is None:
            raise InputError(
                f"{type(self).__name__}.step: expected gradients, got "
                f"{'None' if gradients is None else 'a tensor'}; write {STEP}"
            )
        params = dict(module.named_parameters())
        if isinstance(gradients, Gradients):
            gradients = GradientsParams.of(gradients, params)
            if not gradients and not module.training:
                raise InputError(
                    f"{type(self).__name__}.step: expected a module on an autodiff "
                    f"device and gradients of its parameters, got none for "
                    f"{type(module).__name__} on {str(module.device)!r}; copies, as "
                    f"train() makes them, have parameters of their own"
                )
        with module.device.computing():
            self._step(learning_rate, module, params, gradients)

    def _step(
        self,
        learning_rate: float,
        module: Module,
        params: Mapping[str, Param],
        gradients: GradientsParams,
    ) -> None:
        if self.clip is not None:
            gradients = self.clip(gradients)
        if unknown := [path for path in gradients if path not in params]:
            raise InputError(
                f"optimizer: expected gradients of parameters of "
                f"{type(module).__name__}, got one for {unknown[0]!r}"
            )
        rates = rates_of(learning_rate, module, gradients)
        if recording.tape is None:
            skips.settle()
        given = gradients.half if self.takes_half else gradients.__getitem__
        with self.turns:
            self._update_all(
                [(path, params[path], given(path), rates[path]) for path in rates]
            )

    def _update_all(self, updates: list[Update]) -> None:
        for update in updates:
            with update[1].device.computing():
                self._update(*update)

    def _update(self, path: str, param: Param, gradient: Array, rate: float) -> None:
        self._needs_python()
        weight = param.data
        state = self._prepared(path, param, weight)
        grad = param.device.put(gradient)
        now = value_of(rate)
        param.assign(self._next(weight, grad, state, now), weight.dtype)
        self._state[path] = state

    def _needs_python(self) -> None:
        """Tell a capture of a whole step that the rule is no kernel."""
        if recording.tape is not None:
            recording.tape.refuse(f"{type(self).__name__} steps in Python")

    def _remember(self, path: str, state: State) -> None:
        """Keep a state whose arrays a kernel changes in place."""
        if recording.tape is not None:
            recording.tape.remembered(lambda: self._state, path, state)
        self._state[path] = state

    def _prepared(self, path: str, param: Param, weight: Array) -> State:
        """The parameter's state, with this step counted."""
        put, shape = param.device.put, weight.shape
        state = dict(self._state.get(path, ()))
        for slot in self.slots():
            if slot not in state:
                state[slot] = np.zeros(shape, at_least_float32(weight.dtype))
            array = state[slot] = put(state[slot])
            if array.shape != shape:
                raise InputError(
                    f"{type(self).__name__}: expected a state of shape {shape} "
                    f"for {path!r}, got {array.shape}"
                )
        state[STEP_COUNT] = state.get(STEP_COUNT, 0) + 1
        return state

    def _next(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        """`update` in the precision and with the sign that it wants."""
        wide = at_least_float32(weight.dtype)
        grad = grad.astype(wide, copy=False)
        grad = -grad if self.maximize else grad
        return self.update(weight.astype(wide, copy=False), grad, state, rate)

    def _unchanged(self) -> AbstractContextManager[Any]:
        return self.turns

    def _named(self) -> dict[str, Array]:
        skips.settle()
        return {
            f"{path}.{key}": np.asarray(value) if key == STEP_COUNT else value
            for path, state in self._state.items()
            for key, value in state.items()
        }

    def _recall(self, state: Mapping[str, Array]) -> None:
        skips.settle()
        loaded: dict[str, State] = {}
        for name, array in state.items():
            path, dot, key = name.rpartition(".")
            if not dot:
                raise RecordError(
                    f"optimizer state: expected 'parameter.key', got {name!r}"
                )
            loaded.setdefault(path, {})[key] = (
                int(array) if key == STEP_COUNT else array
            )
        wanted = {*self.slots(), STEP_COUNT}
        for path, each in loaded.items():
            if missing := sorted(wanted - each.keys()):
                raise RecordError(
                    f"optimizer state: {type(self).__name__} needs {missing[0]!r} of "
                    f"{path!r}, got {sorted(each)}"
                )
        self._state = loaded


def _found(gradients: Gradients | GradientsParams, module: Module) -> dict[str, Any]:
    """The gradients of a module's parameters by path, while a step is captured."""
    if isinstance(gradients, Gradients):
        params = dict(module.named_parameters())
        return {path: gradients.get(p) for path, p in params.items() if p in gradients}
    return dict(gradients)


def _stepped(
    rule: Optimizer,
    rate: Any,
    module: Module,
    found: dict[str, Any],
    params: dict[str, Param],
) -> None:
    """A step that was captured, with the gradients of this run."""
    arrays = {
        path: g.data if isinstance(g, Variable) else g for path, g in found.items()
    }
    rule._step(value_of(rate), module, params, GradientsParams(arrays))


def at_least_float32(dtype: Any) -> Any:
    """The dtype that a rule computes and remembers in; small numbers vanish in half."""
    small = dtype.itemsize < 4 and dtype.kind in "fV"
    return np.dtype(np.float32) if small else dtype


def check(name: str, value: float, low: float, high: float = float("inf")) -> None:
    """Raise InputError unless low <= value < high."""
    if not low <= value < high:
        raise InputError(f"{name}: expected a value in [{low}, {high}), got {value}")
