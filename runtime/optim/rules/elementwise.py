"""Elementwise optimizers, computed in chunks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from burnish.backend import Array, namespace
from burnish.backend.cuda.elementwise import optimizer
from burnish.backend.cuda.elementwise.casts import cast_all
from burnish.backend.cuda.graphs.live import Live, value_of
from burnish.backend.cuda.layout import contiguous
from burnish.nn.core.param import Param
from burnish.optim.core.clip import bound_of, is_planned
from burnish.optim.core.optimizer import (
    STEP_COUNT,
    Optimizer,
    State,
    Update,
    at_least_float32,
)
from burnish.optim.rules import formula, statements
from burnish.optim.rules.traces import Traces

_PIECE = 1 << 16  # elements: what a rule makes in between stays in a core's cache


@dataclass(eq=False, kw_only=True)
class Elementwise(Optimizer):
    """The base of rules that look at one element at a time.

    Such a rule is given flat pieces of a parameter, which spares the memory's speed and
    most of what it takes. On a GPU it becomes one kernel for all parameters.
    """

    takes_half = True

    _traces: Traces[dict[str, Any]] = field(
        default_factory=lambda: Traces(formula.traced), init=False, repr=False
    )
    _statements: dict[Any, Traces[optimizer.Statements]] = field(
        default_factory=dict, init=False, repr=False
    )

    def write(
        self, new: Array, weight: Array, grad: Array, state: State, rate: float
    ) -> None:
        """Fill `new` with the new weight; change the arrays of `state` in place.

        All are of one shape. `new` is uninitialized at first. On a GPU and in plans it
        runs on symbols, once for many steps, and once more where a field, a global or
        a variable of a closure that it reads is another one. A rule that draws random
        numbers runs as it is.
        """
        raise TypeError(f"{type(self).__name__} has no update rule")

    def kernel(self, state: State, rate: float) -> tuple[str, dict[str, Any]] | None:
        """The kernel of the C library that does what `write` does, and its numbers.

        They depend on the count of steps in `state`, not on its arrays. A rule that has
        no kernel of its own is traced: its formula is a program.
        """
        return None

    def slot_fields(self, kernel: str) -> dict[str, str]:
        """The fields of a kernel's record that have the state's arrays, by slot."""
        names = self.slots()
        is_own = kernel != "formula"
        return {name: name if is_own else f"s{i}" for i, name in enumerate(names)}

    @property
    def has_records(self) -> bool:
        """Whether plans step with records: there is a kernel, and one that clips so.

        A formula may be another one in each step: the next ones are looked at.
        """
        if not is_planned(self.clip) or not self._has_kernel():
            return False
        if self._owns_kernel():
            return True
        with self.turns:
            counts = {state[STEP_COUNT] + 1 for state in self._state.values()} | {1}
        return all(self._traced({STEP_COUNT: each}, 0.0) for each in counts)

    def are_known(self, rates: Iterable[tuple[str, float]]) -> bool:
        """Whether plans have `numbers` for the next step; rates: of parameters' paths.

        A formula may branch by the rate.
        """
        if self._owns_kernel():
            return True
        with self.turns:
            steps = {
                (self._state.get(path, {}).get(STEP_COUNT, 0) + 1, rate)
                for path, rate in rates
            }
        return all(self._traced({STEP_COUNT: n}, rate) for n, rate in steps)

    def begun(self, path: str, param: Param, weight: Array) -> State:
        """A parameter's state with this step counted, for a plan's records.

        Its arrays are of float32, dense and writable.
        """
        state = self._prepared(path, param, weight)
        for slot in self.slots():
            if not _is_writable(state[slot]):
                state[slot] = np.array(state[slot], np.float32, order="C")
        self._state[path] = state
        return state

    def is_begun(self, path: str, state: State) -> bool:
        """Count one more step, if this still is the parameter's state."""
        if self._state.get(path) is not state:
            return False
        state[STEP_COUNT] += 1
        return True

    def record(self) -> tuple[str, dict[str, Any]]:
        """The kind of a plan's records and their fields, before `numbers` are known."""
        made = self._traced({STEP_COUNT: 1}, 0.0)
        assert made is not None  # of `has_records`
        return made[0], {**made[1], "maximize": 0, "bound": 0.0}

    def numbers(self, state: State, rate: float) -> dict[str, Any]:
        """The numbers of a plan's records for parameters of this count of steps."""
        made = self._traced(state, rate)
        assert made is not None  # of `are_known`
        bound = bound_of(self.clip)
        return {**made[1], "maximize": self.maximize, "bound": bound}

    def update(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        new = namespace(weight).empty_like(weight)
        self.write(new, weight, grad, state, rate)
        return new

    def _update_all(self, updates: list[Update]) -> None:
        rest = []
        groups: dict[Any, tuple[Any, list[Any]]] = {}
        for path, param, gradient, rate in updates:
            weight: Any = param.data
            device = param.device
            if device.kind != "cuda" or not weight._c_contiguous:
                rest.append((path, param, _single(gradient), rate))
                continue
            state = self._prepared(path, param, weight)
            dtype, kind = weight.dtype, gradient.dtype
            is_read = kind != dtype and _is_half(gradient) and dtype.char == "f"
            grad = device.put(gradient, kind if is_read else dtype)
            if not grad._c_contiguous:
                grad = contiguous(grad)
            count, now = state[STEP_COUNT], value_of(rate)
            alike = (dtype, grad.dtype, count, now, device.index)
            part = (path, param, (weight, grad, state))
            groups.setdefault(alike, (rate, []))[1].append(part)
        for rate, group in groups.values():
            with group[0][1].device.computing():
                self._update_group(group, rate)
        super()._update_all(self._without_kernel(rest))

    def _without_kernel(self, updates: list[Update]) -> list[Update]:
        """Step by kernels of the C library; the updates that none is for."""
        rest, news, calls = [], [], []
        if not updates or not self._has_kernel():
            return updates
        self._needs_python()
        numbers: dict[Any, Any] = {}  # most parameters have made as many steps
        names = self.slots()
        for update in updates:
            path, param, gradient, rate = update
            weight = param.data
            if not _is_plain(weight, gradient):
                rest.append(update)
                continue
            state = self._prepared(path, param, weight)
            count, now = state["step"], value_of(rate)
            if (count, now) not in numbers:
                numbers[count, now] = self._traced(state, now)
            made = numbers[count, now]
            slots = {slot: state[slot] for slot in names}
            if made is None or not all(map(_is_writable, slots.values())):
                rest.append(update)
                continue
            new = np.empty(weight.shape, np.float32)
            fields = self.slot_fields(made[0])
            arrays = {fields[slot]: array for slot, array in slots.items()}
            arrays |= {"weight": weight, "grad": gradient, "out": new}
            calls.append((made, arrays))
            news.append((path, param, state, new))
        self._launch(calls)
        for path, param, state, new in news:
            param.assign(new)
            self._state[path] = state
        return rest

    def _has_kernel(self) -> bool:
        """Whether the library is there, and the rule is the one that `write` has."""
        if type(self).update is not Elementwise.update:
            return False
        from burnish.kernels import direct

        return direct.usable() is not None

    def _owns_kernel(self) -> bool:
        """Whether the class that has the rule has its kernel too."""
        owner = next(c for c in type(self).__mro__ if "write" in vars(c))
        return "kernel" in vars(owner)

    def _traced(self, state: State, rate: float) -> tuple[str, dict[str, Any]] | None:
        """The kernel of the rule; one that changes `write` alone is traced.

        A trace serves many steps. A formula is another one once an option changes.
        """
        if self._owns_kernel():
            return self.kernel(state, rate)
        made = self._traces.at(self, state[STEP_COUNT], rate)
        return None if made is None else ("formula", made)

    def _stated(
        self, dtype: Any, step: int, rate: float
    ) -> optimizer.Statements | None:
        """The rule in C for a GPU, at a count of steps."""
        if dtype not in self._statements:
            made = partial(statements.traced, dtype=dtype)
            self._statements[dtype] = Traces(made)
        return self._statements[dtype].at(self, step, rate)

    def _launch(self, calls: list[Any]) -> None:
        from burnish.kernels import direct

        by_name: dict[str, list[Any]] = {}
        rest = {"maximize": self.maximize, "factor": None, "bound": float("inf")}
        for (name, numbers), arrays in calls:
            count = arrays["out"].size
            fields = {**numbers, **arrays, **rest, "count": count}
            by_name.setdefault(name, []).append((direct.shares(count), fields))
        for name, each in by_name.items():
            direct.run(name, each)

    def _update_group(self, group: list[Any], rate: float | Live) -> None:
        """Step parameters of one dtype on one GPU that have made as many steps."""
        parts = [part for _, _, part in group]
        slots = self.slots()
        news = optimizer.stepped(self._stated, slots, parts, rate, self.maximize)
        if news is None:  # a rule of the user's that no kernel can say
            self._needs_python()
            now = value_of(rate)
            news = [self._next(w, _single(g), state, now) for w, g, state in parts]
        for (path, param, (weight, _, state)), new in zip(group, news, strict=True):
            param.assign(new, weight.dtype)
            self._remember(path, state)

    def _next(self, weight: Array, grad: Array, state: State, rate: float) -> Array:
        if weight.size <= _PIECE or namespace(weight) is not np:
            return super()._next(weight, grad, state, rate)
        new = np.empty(weight.shape, weight.dtype)
        wide = at_least_float32(weight.dtype)
        spare = None if wide == weight.dtype else np.empty(_PIECE, wide)
        flat, olds, grads = new.reshape(-1), weight.reshape(-1), grad.reshape(-1)
        held = {k: v.reshape(-1) for k, v in state.items() if hasattr(v, "dtype")}
        part: dict[str, Any] = dict(state)
        for start in range(0, weight.size, _PIECE):
            piece = slice(start, start + _PIECE)
            part |= {key: array[piece] for key, array in held.items()}
            w = olds[piece].astype(wide, copy=False)
            g = grads[piece].astype(wide, copy=False)
            out = flat[piece] if spare is None else spare[: len(w)]
            self.write(out, w, -g if self.maximize else g, part, rate)
            if spare is not None:
                flat[piece] = out
        return new


def _is_plain(weight: Array, grad: Array) -> bool:
    """Whether kernels take such a parameter with such a gradient."""
    return (
        namespace(weight, grad) is np
        and weight.dtype == grad.dtype == np.float32
        and weight.shape == grad.shape
        and bool(weight.flags.c_contiguous and grad.flags.c_contiguous)
    )


def _is_writable(array: Array) -> bool:
    flags = array.flags
    return bool(array.dtype == np.float32 and flags.c_contiguous and flags.writeable)


def less(new: Array, weight: Array, change: Array, rate: float) -> None:
    """new <- weight - rate * change"""
    xp = namespace(weight)
    xp.multiply(change, rate, out=new)
    xp.subtract(weight, new, out=new)


def average(running: Array, value: Array, keep: float, spare: Array) -> Array:
    """running <- keep * running + (1 - keep) * value, in place; spare is written to."""
    running *= keep
    running += namespace(running).multiply(value, 1 - keep, out=spare)
    return running


def square_average(running: Array, value: Array, keep: float, spare: Array) -> Array:
    """The same with value ** 2."""
    return average(running, namespace(value).square(value, out=spare), keep, spare)


def _is_half(gradient: Array) -> bool:
    """Whether a GPU's gradient is in half precision, which the kernel widens."""
    dtype = gradient.dtype
    is_half = dtype.itemsize == 2 and dtype.kind in "fV"
    return is_half and namespace(gradient) is not np


def _single(gradient: Array) -> Array:
    """The gradient for a rule in Python: float32 where it is a GPU's half precision."""
    if not _is_half(gradient):
        return gradient
    return cast_all([gradient], np.dtype(np.float32))[0]
