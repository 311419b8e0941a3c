"""Steps: a function that trains modules, with a plan for each signature."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.autodiff import recording
from burnish.backend import Device
from burnish.capture import CaptureError
from burnish.capture.signature import key_of, kind_of
from burnish.kernels import library, num_threads
from burnish.nn.core.module import Module
from burnish.plan.arguments import is_number, numbers_in
from burnish.plan.cuda import Home, StepPlan
from burnish.plan.stepping.training import TrainingPlan


class Refused:
    """Calls that are no step that a plan can have, and why."""

    def __init__(self, why: str):
        self.why = why


class Steps:
    """Calls of a function as steps of training; see `StepPlan` and `TrainingPlan`.

    on_gpu: makes a plan for the GPU of a number; on_cpu: one for a CPU. most:
    signatures that are kept.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        modules: list[Module],
        on_gpu: Callable[[int, dict[int, Home], bool], StepPlan],
        on_cpu: Callable[[bool], TrainingPlan],
        most: int,
    ):
        self._function, self._modules, self._most = function, modules, most
        self._on_gpu, self._on_cpu = on_gpu, on_cpu
        self._homes: dict[int, Home] = {}
        self._plans: OrderedDict[Any, StepPlan | TrainingPlan] = OrderedDict()
        self._by_value: set[Any] = set()
        self._refused: dict[str, Refused] = {}
        self._lock = threading.RLock()

    @property
    def known(self) -> list[StepPlan | TrainingPlan | Refused]:
        """The plans of the calls so far, refused ones too."""
        return [*self._plans.values(), *self._refused.values()]

    @property
    def are_made(self) -> bool:
        """Whether calls are steps: a module is on an autodiff device."""
        devices = [module.device for module in self._modules]
        kinds = {device.kind for device in devices if device.is_autodiff}
        if recording.paused or not kinds:
            return False
        return "cuda" in kinds or library() is not None

    def __call__(self, args: Any, options: Any) -> Any:
        """The function's result."""
        found = self._found(args, options)
        if isinstance(found, Refused) or found.why:
            return self._function(*args, **options)
        made = found(args, options)
        if found.reads_numbers and not found.by_value:  # it is for these alone
            with self._lock:
                key = self._key(args, options)
                self._by_value.add(key)
                self._plans[key, numbers_in((args, options))] = self._plans.pop(
                    (key, ())
                )
                found.by_value = True
        return made

    def summary(self, args: Any, options: Any) -> str:
        """How such a call runs, in words."""
        found = self._found(args, options)
        if isinstance(found, Refused) or found.why:
            return f" runs eagerly: {found.why}"
        return f": {found.summary}"

    def _key(self, args: Any, options: Any) -> Any:
        form = key_of((args, options), _kind)
        devices = tuple(module.device for module in self._modules)
        return form, devices, num_threads()

    def _found(self, args: Any, options: Any) -> StepPlan | TrainingPlan | Refused:
        """The plan of a call, made if there is none; or why there can be none."""
        try:
            key = self._key(args, options)
        except CaptureError as error:
            return self._refused.setdefault(str(error), Refused(str(error)))
        with self._lock:
            by_value = key in self._by_value
            key = (key, numbers_in((args, options)) if by_value else ())
            if key not in self._plans:
                places = self._places()
                if len(places) > 1:
                    names = ", ".join(sorted(f"'{place}'" for place in places))
                    why = f"{names}: a step is for one device"
                    return self._refused.setdefault(why, Refused(why))
                self._plans[key] = self._new(places.pop(), by_value)
            self._plans.move_to_end(key)
            while len(self._plans) > self._most:
                self._plans.popitem(last=False)
            return self._plans[key]

    def _new(self, place: Device, by_value: bool) -> StepPlan | TrainingPlan:
        if place.kind == "cpu":
            return self._on_cpu(by_value)
        return self._on_gpu(place.index, self._homes, by_value)

    def _places(self) -> set[Device]:
        """The devices of parameters and buffers, or of modules without any."""
        held = [device for module in self._modules for device in module.devices]
        own = [module.device for module in self._modules if module.training]
        return {device.inner() for device in held or own}


def _kind(item: Any) -> Any:
    """What stands for an argument in a key: for a number that it is one.

    NumPy's are others than Python's: beside single precision they give double.
    """
    number = np.float64 if isinstance(item, np.float64) else float
    return kind_of(number if is_number(item) else item, [])
