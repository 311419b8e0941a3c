"""compile: a function that plans its calls."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from burnish.autodiff import Variable, recording
from burnish.backend import Device
from burnish.capture import CaptureError, capture
from burnish.capture.reach import reached
from burnish.capture.signature import form_of
from burnish.errors import InputError
from burnish.kernels import library, num_threads
from burnish.nested import mapped
from burnish.plan.plan import Plan
from burnish.plan.shown import explained, listed

P = ParamSpec("P")
R = TypeVar("R")

_CPU = Device("cpu")
_MOST = 32
"""Signatures whose plans are kept; the one that was not used longest goes first."""


class Unplanned:
    """Calls of a signature that run as they are, and why."""

    def __init__(self, why: str):
        self.why = why


class Compiled(Generic[P, R]):
    """A function of tensors that runs plans: see `burnish.compile`."""

    def __init__(self, function: Callable[P, R], off: frozenset[str] = frozenset()):
        functools.update_wrapper(self, function, updated=())
        self._function, self._off = function, off
        self._modules = list(reached(function).values())
        self._plans: OrderedDict[Any, Plan | Unplanned] = OrderedDict()
        self._by_value: set[Any] = set()
        self._lock = threading.RLock()

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        if recording.tape is not None:
            return self._function(*args, **options)
        found, given = self._found(args, options)
        if isinstance(found, Unplanned):
            return self._function(*args, **options)
        try:
            found.program.check()
        except CaptureError:  # a module is not what it was
            found = self._planned(args, options)
            if isinstance(found, Unplanned):
                return self._function(*args, **options)
        return found(given)

    def plan(self, *args: P.args, **options: P.kwargs) -> str:
        """The steps of a call with such arguments: a line for each, and its share."""
        found, given = self._found(args, options)
        if isinstance(found, Unplanned):
            return f"{self._name} runs as it is: {found.why}"
        return listed(self._name, found, given)

    def explain(self) -> str:
        """What runs as it is, and why, in the calls so far."""
        return explained(self._name, [*self._plans.items()])

    @property
    def _name(self) -> str:
        function = self._function
        return getattr(function, "__name__", type(function).__name__)

    def _found(self, args: Any, options: Any) -> tuple[Plan | Unplanned, list[Any]]:
        """The plan of such a call, made if there is none, and the call's tensors."""
        given: list[Any] = []
        key = self._key(args, options, given)
        if isinstance(key, Unplanned):
            return key, given
        with self._lock:
            found = self._plans.get(key)
            if found is None and key[0] in self._by_value:
                key = (*key, _numbers(given))
                found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
        if found is None:
            found = self._planned(args, options)
        if isinstance(found, Plan) and found.by_value:
            given = [each for each in given if not _is_number(each)]
        return found, given

    def _key(self, args: Any, options: Any, given: list[Any]) -> Any:
        try:
            form = form_of((args, options), given)
        except CaptureError as error:
            return Unplanned(str(error))
        devices = tuple(module.device for module in self._modules)
        return _frozen(form), devices, num_threads(), recording.paused

    def _planned(self, args: Any, options: Any) -> Plan | Unplanned:
        given: list[Any] = []
        key = self._key(args, options, given)
        with self._lock:
            found = self._made(args, options, given)
            if isinstance(found, Plan) and found.by_value:
                self._by_value.add(key[0])
                key = (*key, _numbers(given))
            self._plans[key] = found
            self._plans.move_to_end(key)
            while len(self._plans) > _MOST:
                self._plans.popitem(last=False)
        return found

    def _made(self, args: Any, options: Any, given: list[Any]) -> Plan | Unplanned:
        kernels = library()
        if kernels is None:
            return Unplanned("there are no kernels; burnish kernels info says why")
        for each in (*given, *self._modules):
            if each.device is not _CPU:
                return Unplanned(f"'{each.device}': plans are for inference on the cpu")
        by_value = False
        try:
            program = capture(self._function, *args, **options)
        except CaptureError as error:
            if not any(map(_is_number, given)):
                return Unplanned(str(error))
            try:
                program = _captured_by_value(self._function, args, options)
            except CaptureError as second:
                return Unplanned(str(second))
            by_value = True
        for item in program.fixed.values():
            if item.device is not _CPU:
                return Unplanned(f"'{item.device}': plans are for inference on the cpu")
        try:
            plan = Plan(program, kernels, num_threads(), self._off)
        except Exception as error:  # a defect here is no reason to give no result
            return Unplanned(f"planning failed: {type(error).__name__}: {error}")
        plan.by_value = by_value
        return plan


def _captured_by_value(function: Any, args: Any, options: Any) -> Any:
    """A capture where whole numbers without axes are what they are in this call."""
    form: list[Any] = []

    def hole(item: Any) -> Any:
        if isinstance(item, Variable) and not _is_number(item):
            form.append(item)
            return _Hole(len(form) - 1)
        return item

    shape = mapped((args, options), hole)

    def called(*tensors: Any) -> Any:
        own_args, own_options = mapped(
            shape, lambda item: tensors[item.place] if isinstance(item, _Hole) else item
        )
        return function(*own_args, **own_options)

    called.__name__ = getattr(function, "__name__", type(function).__name__)
    return capture(called, *form)


class _Hole:
    """Where a tensor stands among arguments."""

    def __init__(self, place: int):
        self.place = place


def _is_number(each: Any) -> bool:
    """Whether a tensor is one whole number or truth value, which Python may read."""
    return not each.shape and each.dtype.kind in "biu"


def _numbers(given: list[Any]) -> tuple[Any, ...]:
    return tuple(each.data.item() for each in given if _is_number(each))


def _frozen(form: Any) -> Any:
    """A form as something that can be a key."""
    if isinstance(form, dict):
        return tuple((key, _frozen(item)) for key, item in form.items())
    if type(form) in (tuple, list):
        return (type(form), *map(_frozen, form))
    return form


def compile(function: Callable[P, R], *, off: tuple[str, ...] = ()) -> Compiled[P, R]:
    """A function that gives `function`'s numbers, computed by a plan of kernels.

    function: a module, or a function of tensors. The first call with arguments of some
    shapes and dtypes plans it; later ones run the plan. Parameters stay the module's:
    one that is assigned new values is taken up. What kernels do not compute runs as it
    is between them, `explain()` says what and why; so does everything where gradients
    are recorded, or on another device than the CPU. Results are those of the plain call
    within 1e-5 of their scale. off: rules and kernels to leave out, by name.
    """
    if not callable(function):
        raise InputError(
            f"compile: expected a module or a function of tensors, "
            f"got a {type(function).__name__}"
        )
    return Compiled(function, frozenset(off))
