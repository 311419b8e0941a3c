"""StepTape: records a whole training step, with its gradients and updates."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Gradients, Variable, recording
from burnish.backend import Device
from burnish.backend.cuda.graphs.live import Live, value_of
from burnish.capture.gradients import Walk
from burnish.capture.tape import Call, Tape
from burnish.capture.traced import Traced
from burnish.capture.where import refusal
from burnish.errors import CaptureError
from burnish.nn.adapters.reparameterize import Reparameterized
from burnish.nn.core.param import Stored
from burnish.steps import draw
from burnish.tensor import Tensor

_ARITHMETIC = ("add", "sub", "mul", "div")


class StepTape(Tape):
    """A tape whose function asks for gradients and updates parameters.

    rates: schedules that the step asks for a rate, and the number that it gets.
    numbers: the floats among the arguments, which may be others in each run.
    has_gradients: whether it asks for any.
    """

    is_step = True

    def __init__(self) -> None:
        super().__init__()
        self.rates: list[tuple[Any, Live]] = []
        self.numbers: list[Live] = []
        self.has_gradients = False
        self.changed: dict[int, int] = {}
        self.made: dict[int, Any] = {}
        self.derived: dict[int, tuple[Any, Any]] = {}
        self._tensors: dict[int, Any] = {}  # of numbers
        self._wide: set[int] = set()  # NumPy's, which make results as wide

    def argument(self, real: Variable) -> Any:
        made = super().argument(real)
        self.made[made.place] = made
        return made

    def plain(self, item: Any) -> Any:
        """A float may be another one in each run."""
        if not isinstance(item, float):
            return item
        self.numbers.append(Live(float(item)))
        if isinstance(item, np.float64):
            self._wide.add(id(self.numbers[-1]))
        return self.numbers[-1]

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        always: bool = False,
    ) -> Any:
        """As any tape's, of parameters that are made of others as their formula.

        A float of the step's arguments beside values of single precision is a tensor.
        """
        given = leaves((args, options))
        if any(isinstance(each, Reparameterized) for each in given):
            args, options = mapped((args, options), self._computed)
        if any(type(each) is Live for each in given) and function is not _as_tensor:
            if function.__name__ in _ARITHMETIC and any(map(_is_single, args)):
                args = tuple(self._number(each) for each in args)
            args, options = mapped((args, options), self._read_number)
        return super().call(function, args, options, always)

    def _number(self, item: Any) -> Any:
        """A float of the arguments as a tensor, which each run makes anew."""
        if type(item) is not Live or id(item) in self._wide:
            return item
        if id(item) not in self._tensors:
            self._tensors[id(item)] = _as_tensor(item)
        return self._tensors[id(item)]

    def _read_number(self, item: Any) -> Any:
        """A number of the arguments as it is, which a plan is for then."""
        if type(item) is not Live:
            return item
        return np.float64(float(item)) if id(item) in self._wide else float(item)

    def _computed(self, item: Any) -> Any:
        """A parameter's formula, written down once until a part is changed."""
        if not isinstance(item, Reparameterized):
            return item
        self.note_formula(item)
        if item.is_merged:
            return item
        if id(item) not in self.derived:
            self.derived[id(item)] = (item, item.computed())
        return self.derived[id(item)][1]

    def late(self, function: Any, *args: Any, **options: Any) -> Any:
        self.read(args[0])

    def ref(self, value: Any) -> Any:
        found = super().ref(value)
        if isinstance(value, Variable):
            self.made.setdefault(found.place, value)
        return found

    def assign(self, stored: Stored, value: Any, dtype: Any) -> None:
        super().assign(stored, value, dtype)
        self.derived.clear()
        self.changed[id(stored)] = len(self.calls)

    def backward(self, output: Any, gradient: Any, create_graph: bool) -> Gradients:
        """The gradients, as values of the capture."""
        if create_graph:
            self.refuse("gradients of gradients are asked for")
        if output.node is None or (gradient is None and output.real.size != 1):
            self.refuse("backward() of what has no gradient")
        if output.device.is_balanced:
            self.refuse("a balanced device computes values again for the gradients")
        self.has_gradients = True
        if gradient is None:
            ones = np.ones(output.shape, output.dtype)
            gradient = Tensor.wrap(ones, output.device.inner())
        paused = recording.paused, self._paused
        recording.paused = self._paused = True  # no gradients are recorded
        try:
            return Walk(self, self.made, self.changed).gradients(output, gradient)
        finally:
            recording.paused, self._paused = paused

    def update(
        self, step: Any, rule: Any, rate: Any, module: Any, found: dict[str, Any]
    ) -> None:
        """An optimizer's step, which happens in each run and not in the capture."""
        params = dict(module.named_parameters())
        stored = {path: params[path] for path in found if path in params}
        self._write(step, ((rule, rate, module, found, stored), {}), None, True)
        self.derived.clear()
        for each in stored.values():
            self.changed[id(each)] = len(self.calls)

    def check_kept(self) -> None:
        """Raises CaptureError for a value of the step that outlives it."""
        values = [weakref.ref(v) for v in self.made.values() if isinstance(v, Traced)]
        self.made.clear()
        self.derived.clear()
        self._tensors.clear()
        self.arguments.clear()
        for generation in range(3):  # cycles: mostly young ones, of a large process
            if all(value() is None for value in values):
                return
            gc.collect(generation)
        if any(value() is not None for value in values):
            raise CaptureError(refusal("a tensor is kept that is no result; return it"))

    def rate(self, schedule: Any) -> Any:
        """A schedule's next rate, which each run asks for anew."""
        recording.tape = None
        try:
            value = schedule.step()
        finally:
            recording.tape = self
        schedule.count -= 1
        self.rates.append((schedule, Live(value, lambda rate: rate)))
        return self.rates[-1][1]


@draw
def _as_tensor(number: Live) -> Tensor:
    """A number of this run; drawn, since a program's constants stay."""
    return Tensor.wrap(np.asarray(value_of(number), np.float32), Device("cpu"))


def _is_single(item: Any) -> bool:
    return isinstance(item, Variable) and item.dtype == np.float32


def changes(call: Call) -> list[Any]:
    """The places of the parameters and buffers that a call gives new values."""
    if is_assignment(call):
        return [call.args[0].place]
    return [each.place for each in leaves(call.args[4])] if is_update(call) else []


def is_assignment(call: Call) -> bool:
    """Whether a call gives one parameter or buffer new values."""
    return getattr(call.function, "__name__", "") == "_assign"


def is_update(call: Call) -> bool:
    """Whether a call is an optimizer's step."""
    return getattr(call.function, "__name__", "") == "_stepped"
