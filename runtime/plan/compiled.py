"""compile: a function that plans its calls."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from burnish._files.shown import close
from burnish.autodiff import recording
from burnish.backend import Device
from burnish.capture import CaptureError, Program, written
from burnish.capture.reach import Reach, Reads
from burnish.capture.signature import key_of, kind_of
from burnish.errors import InputError
from burnish.kernels import check_bf16, library, num_threads
from burnish.plan.branches import Branches
from burnish.plan.call import (
    accepted,
    are_on_cpu,
    is_number,
    numbers,
    taken,
    tape,
    unfit,
    with_open,
)
from burnish.plan.cuda import (
    GraphPlan,
    Home,
    Reshaped,
    Room,
    StepPlan,
    listed_on_gpu,
)
from burnish.plan.plan import Plan, may_be_off
from burnish.plan.quick import Checked
from burnish.plan.shown import explained, listed, listed_way
from burnish.plan.stepping.steps import Steps
from burnish.plan.stepping.training import TrainingPlan
from burnish.planned.space import Fault
from burnish.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

_CPU = Device("cpu")
_CHANGES, _CALLS = 8, 4
"""What a function reads may change so often, and then once in so many calls; where it
changes more often, calls run eagerly."""

_MOST = 32
"""Signatures whose plans are kept; the one that was not used longest goes first."""


PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
"""Precisions in which float32 may be computed; a CPU has "fp32" and "bf16"."""

_ROUNDS_MORE = {"winograd": 1e-5}
"""Kernels of a CPU that round more than a sum, and the least tolerance with them."""


class Unplanned:
    """Calls of a signature that run eagerly, and why."""

    def __init__(self, why: str):
        self.why = why


class _Known:
    """A plan that was found by a call's shapes, in some surroundings.

    run: gives the results of the call's tensors; raises CaptureError where a module is
    not what it was.
    """

    def __init__(self, surroundings: Any, plan: Plan | GraphPlan | Branches):
        self.surroundings, self.plan = surroundings, plan
        self.run: Callable[[Any], Any] = plan.checked
        if plan.by_value:
            self.run = lambda given: plan.checked(taken(plan, given))
        elif isinstance(plan, Plan):
            self.run = Checked(plan)


class Compiled(Generic[P, R]):
    """A function of tensors that runs plans: see `burnish.compile`."""

    def __init__(
        self,
        function: Callable[P, R],
        off: frozenset[str] = frozenset(),
        precision: str = "fp32",
    ):
        functools.update_wrapper(self, function, updated=())
        self._function, self._off, self._precision = function, off, precision
        self._accepted = accepted(function)
        self._rooms: dict[int, Room] = {}
        self._lock = threading.RLock()
        self._calls = self._changes = 0
        self._is_restless = False
        self._begin()

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Copies, and what pickle loads, plan their own calls anew.

        A global, such as a decorated function, is found by its name instead.
        """
        name = getattr(self._function, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return type(self), (self._function, self._off, self._precision)

    def _begin(self) -> None:
        """Look at which modules there are; no plan is made yet."""
        self._reach = Reach(self._function)
        self._modules = list(self._reach.modules.values())
        self._reads: Reads | None = None
        self._plans: OrderedDict[Any, Plan | GraphPlan | Branches | Unplanned] = (
            OrderedDict()
        )
        self._quick: dict[Any, _Known] = {}
        self._by_value: set[Any] = set()
        self._steps = Steps(
            self._function, self._modules, self._on_gpu, self._on_cpu, _MOST
        )

    def _begin_anew(self) -> None:
        """Forget the plans: what they have read of globals and objects is another."""
        with self._lock:
            self._changes += bool(self._plans or self._steps.known)
            often = self._changes > _CHANGES
            self._is_restless = often and self._changes * _CALLS > self._calls
            self._begin()
            self._look()

    def _look(self) -> None:
        """Look at what is read: before the first plan, as it may be defined late."""
        if self._reads is None:
            self._reads = Reads(self._function, self._reach.modules)

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        if recording.tape is not None:
            return self._function(*args, **options)
        self._calls += 1
        reads = self._reads
        is_same = self._is_restless or (
            reads is not None and self._reach.is_same() and reads.are_same()
        )
        if not is_same:
            self._begin_anew()
        if self._is_restless:
            return self._function(*args, **options)
        quick = None if options else self._quick_key(args)
        if quick is None and self._accepted:
            args, options = self._as_tensors(args, options)
            quick = None if options else self._quick_key(args)
        known = self._quick.get(quick) if quick else None
        if known is not None and known.surroundings == self._surroundings():
            try:
                return known.run(args)
            except Fault:
                return self._function(*args, **options)
            except Reshaped as error:
                self._let_be(known.plan, str(error))
                return self._function(*args, **options)
            except CaptureError:  # which the long way finds too
                pass
        if self._steps.are_made:
            return self._steps(args, options)
        found, given = self._found(args, options)
        if quick and not isinstance(found, Unplanned):
            if len(self._quick) > _MOST:
                self._quick.clear()
            self._quick[quick] = _Known(self._surroundings(), found)
        if isinstance(found, Unplanned):
            return self._function(*args, **options)
        try:
            return found.checked(given)
        except Reshaped as error:
            self._let_be(found, str(error))
        except Fault:
            pass
        except CaptureError:  # a module is not what it was
            found = self._planned(args, options)
            if not isinstance(found, Unplanned):
                with contextlib.suppress(Fault):
                    return found(given)
        return self._function(*args, **options)

    def plan(self, *args: P.args, **options: P.kwargs) -> str:
        """The steps of a call with such arguments: a line for each, and its share.

        A CPU's are run to be timed; draws and buffers are as before then. A step of
        training is one line: it cannot be run to be timed.
        """
        self._look()
        if self._steps.are_made and not self._is_restless:
            return f"{self._name}{self._steps.summary(args, options)}"
        args, options = self._as_tensors(args, options)
        found, given = self._found(args, options)
        try:
            if not isinstance(found, Unplanned):
                found.program.check()
        except CaptureError:  # a module is not what it was
            found = self._planned(args, options)
        if isinstance(found, Unplanned):
            return f"{self._name} runs eagerly: {found.why}"
        shown: Any = listed if isinstance(found, Plan) else listed_on_gpu
        if isinstance(found, Branches):
            shown = listed_way
        try:
            text: str = shown(self._name, found, given)
        except Fault as fault:
            why = f"{fault}" or "a value is none that kernels can have"
            return f"{self._name} runs eagerly: {why}"
        return text

    def planned(
        self, *args: P.args, **options: P.kwargs
    ) -> Plan | GraphPlan | Branches | Unplanned:
        """The plan of a call with such arguments, made if there is none."""
        self._look()
        given = self._as_tensors(args, options)
        found: Plan | GraphPlan | Branches | Unplanned = self._found(*given)[0]
        return found

    @property
    def known(self) -> list[Plan | GraphPlan | Branches | Unplanned]:
        """The plans of the calls so far, except those of training steps."""
        return list(self._plans.values())

    def explain(self) -> str:
        """The operators of the calls so far that run eagerly, and why."""
        known = [*self._plans.values(), *self._steps.known]
        return explained(self._name, [self._restless] if self._is_restless else known)

    @property
    def _restless(self) -> Unplanned:
        return Unplanned(
            "globals, variables of closures or attributes of objects that it reads "
            "change too often; give them to it as tensors"
        )

    def _on_gpu(self, index: int, homes: dict[int, Home], by_value: bool) -> StepPlan:
        return StepPlan(self._function, self._room(index), homes, by_value)

    def _on_cpu(self, by_value: bool) -> TrainingPlan:
        self._check_cpu()
        return TrainingPlan(self._function, by_value, self._off, self._half)

    @property
    def _half(self) -> bool:
        return self._precision == "bf16"

    def _check_cpu(self) -> None:
        """Raise InputError where kernels of this CPU have no such precision."""
        if self._precision == "fp16":
            raise InputError(
                f"compile: expected precision 'fp32' or 'bf16' on a CPU, got 'fp16'; "
                f"move the modules of {self._name} and its arguments to a GPU"
            )
        if self._half:
            check_bf16("compile")

    def _room(self, index: int) -> Room:
        if index not in self._rooms:
            if self._half and importlib.util.find_spec("ml_dtypes") is None:
                raise InputError(
                    "compile: expected the package ml_dtypes for precision 'bf16' on a "
                    "GPU; pip install ml_dtypes"
                )
            self._rooms[index] = Room(index, self._precision)
        return self._rooms[index]

    def _quick_key(self, args: Any) -> tuple[Any, ...] | None:
        """The key of plain tensors, and of a CPU's whole numbers; None for others."""
        key: list[Any] = []
        for arg in args:
            if type(arg) is not Tensor or arg.node or arg.device.is_autodiff:
                return None
            data = arg.data
            key += (arg.device, data.shape, data.dtype)
            if not data.shape and data.dtype.kind in "biu":
                if arg.device is not _CPU:  # reading it would wait for the GPU
                    return None
                key.append(data.item())
        return tuple(key)

    def _as_tensors(self, args: Any, options: Any) -> Any:
        """NumPy's arrays as tensors, where the module's `accepts` makes them."""
        if not self._accepted:
            return args, options
        device = self._function.device  # type: ignore[attr-defined]

        def taken(place: int | str, a: Any) -> Any:
            is_array = type(a) is np.ndarray and place in self._accepted
            return Tensor(a, None, device) if is_array else a

        args = tuple([taken(i, a) for i, a in enumerate(args)])
        return args, {name: taken(name, a) for name, a in options.items()}

    def _surroundings(self) -> tuple[Any, ...]:
        """The settings, besides arguments and modules, that a plan depends on."""
        return num_threads(), recording.paused

    def _setting(self, on_cpu: bool) -> tuple[Any, ...]:
        """The settings, besides its arguments, that a plan depends on."""
        devices = tuple([module.device for module in self._modules])
        return devices, num_threads() if on_cpu else 0, recording.paused

    @property
    def _name(self) -> str:
        function = self._function
        return getattr(function, "__name__", type(function).__name__)

    def _let_be(self, plan: Any, why: str) -> None:
        """Run the calls of a plan eagerly from now on."""
        with self._lock:
            self._quick.clear()
            for key, each in self._plans.items():
                if each is plan:
                    self._plans[key] = Unplanned(why)

    def _found(self, args: Any, options: Any) -> tuple[Any, list[Any]]:
        """The plan of such a call, made if there is none, and the call's tensors."""
        given: list[Any] = []
        if self._is_restless:
            return self._restless, given
        key = self._key(args, options, given)
        if isinstance(key, Unplanned):
            return key, given
        with self._lock:
            found = self._plans.get(key)
            if found is None and key[0] in self._by_value:
                key = (*key, numbers(given))
                found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
        if found is None:
            found = self._planned(args, options)
        return found, given if isinstance(found, Unplanned) else taken(found, given)

    def _key(self, args: Any, options: Any, given: list[Any]) -> Any:
        try:
            form = key_of((args, options), functools.partial(kind_of, tensors=given))
        except CaptureError as error:
            return Unplanned(str(error))
        return form, *self._setting(are_on_cpu(given))

    def _planned(
        self, args: Any, options: Any
    ) -> Plan | GraphPlan | Branches | Unplanned:
        given: list[Any] = []
        key = self._key(args, options, given)
        with self._lock:
            found = self._made(args, options, given)
            if not isinstance(found, Unplanned) and found.by_value:
                self._by_value.add(key[0])
                key = (*key, numbers(given))
            self._plans[key] = found
            self._plans.move_to_end(key)
            while len(self._plans) > _MOST:
                self._plans.popitem(last=False)
            self._quick.clear()
        return found

    def _made(
        self, args: Any, options: Any, given: list[Any]
    ) -> Plan | GraphPlan | Branches | Unplanned:
        places = {each.device for each in (*given, *self._modules)}
        if all(place.kind == "cpu" for place in places):
            self._check_cpu()
        if why := unfit(places, given):
            return Unplanned(why)
        try:
            program, by_value = self._captured(places, args, options, given)
        except CaptureError as error:
            if not places <= {_CPU}:
                return Unplanned(str(error))
            return self._branches(args, options)
        try:
            plan = self._plan_of(program, places, given, by_value)
        except CaptureError as error:
            return Unplanned(str(error))
        plan.by_value = by_value
        return plan

    def _captured(
        self, places: set[Device], args: Any, options: Any, given: list[Any]
    ) -> tuple[Program, bool]:
        """A capture, and whether whole numbers among the arguments are part of it."""
        try:
            return written(tape(places), self._function, args, options), False
        except CaptureError:
            if not any(map(is_number, given)):
                raise
        opened, tensors = with_open(
            self._function, args, options, lambda item: not is_number(item)
        )
        return written(tape(places), opened, tuple(tensors), {}), True

    def _branches(self, args: Any, options: Any) -> Branches | Unplanned:
        """The plans of calls on a CPU that choose what to do by computed values."""
        opened, tensors = with_open(self._function, args, options, lambda item: True)

        def plan_of(program: Program) -> Any:
            return self._plan_of(program, {_CPU}, [], False)

        try:
            return Branches(opened, tensors, plan_of)
        except CaptureError as error:
            return Unplanned(str(error))

    def _plan_of(
        self, program: Program, places: set[Device], given: list[Any], by_value: bool
    ) -> Plan | GraphPlan:
        """The plan of a program; raises CaptureError where there can be none."""
        places = places | {item.device for item in program.fixed.values()}
        if why := unfit(places, given):
            raise CaptureError(why)
        try:
            if places <= {_CPU} and (kernels := library()) is not None:
                return Plan(program, kernels, num_threads(), self._off, self._half)
            if by_value:
                given = [each for each in given if not is_number(each)]
            return GraphPlan(program, self._room(next(iter(places)).index), given)
        except CaptureError:
            raise
        except Exception as error:  # a defect here is no reason to give no result
            why = f"planning failed: {type(error).__name__}: {error}"
            raise CaptureError(why) from error


def compile(
    function: Callable[P, R],
    *,
    precision: str = "fp32",
    tolerance: float = 0.0,
    off: tuple[str, ...] = (),
) -> Compiled[P, R]:
    """A function that gives `function`'s numbers, computed by a plan of kernels.

    function: a module, or a function of tensors. The first call with arguments of some
    shapes and dtypes plans it; later ones run the plan: a table of kernels on a CPU,
    CUDA graphs on a GPU. Parameters stay the module's: one that is assigned new values
    is taken up. A function that branches on computed values has plans for each answer
    on a CPU. What a plan cannot have runs eagerly in between, `explain()` says what and
    why; so does everything where gradients are recorded for outside. A function that
    asks for gradients itself and updates parameters is one plan, a step of training.
    Results are those of the plain call within 1e-5 of their scale; a CPU's plans of
    float16 compute in single precision and round what they give, and casts to float16.

    precision: "fp32"; "tf32", with which a GPU rounds what float32 products multiply to
    11 bits and sums in float32; "fp16" or "bf16" (8 bits and float32's range; a GPU
    needs the package ml_dtypes), with which float32 arguments, parameters and what is
    computed from them are float16 or bfloat16 on a GPU, sums, norms and softmax float32
    inside, and results float32 again. In a step of training parameters, gradients and
    what optimizers remember stay float32, and so do losses, norms and softmax; products
    and what follows them are of 16 bits. With "fp16" losses are scaled: a step whose
    gradients overflow changes nothing. All are faster. On a CPU "bf16" rounds what
    linear layers and convolutions multiply, values and weights, to bfloat16, sums in
    float32, and leaves all else in float32; it needs a processor with the instructions
    avx512_bf16. "tf32" rounds nothing there; calls with "fp16", or with "bf16" on
    another processor, raise InputError.
    tolerance: the error, of the results' scale, within which a CPU's plan may take
    kernels that round more than a sum does; from 1e-5 on 3 x 3 convolutions are
    computed by Winograd's algorithm, as their gradients are with any tolerance. off:
    rules and kernels of a CPU's plans to leave out, by name.
    """
    if not callable(function):
        raise InputError(
            f"compile: expected a module or a function of tensors, "
            f"got a {type(function).__name__}"
        )
    if precision not in PRECISIONS:
        *names, last = map(repr, PRECISIONS)
        raise InputError(
            f"compile: expected precision {', '.join(names)} or {last}, "
            f"got {precision!r}"
        )
    if not (isinstance(tolerance, Real) and 0 <= tolerance < 1):
        raise InputError(
            f"compile: expected a tolerance from 0 to below 1, got {tolerance!r}"
        )
    if isinstance(off, str) or not isinstance(off, Collection):
        raise InputError(f"compile: expected a tuple of names as off, got {off!r}")
    if unknown := [name for name in off if name not in may_be_off()]:
        meant = close(unknown[0], may_be_off())
        hint = f"; is {meant!r} meant?" if meant else ""
        raise InputError(
            f"compile: expected off to name rules and kernels of plans, "
            f"got {unknown[0]!r}{hint}"
        )
    inexact = {name for name, least in _ROUNDS_MORE.items() if tolerance < least}
    return Compiled(function, frozenset({*off, *inexact}), precision)
