"""Arguments of a planned call: tensors that a plan takes, numbers it is made for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from burnish._engine.pytree import mapped
from burnish.autodiff import Variable
from burnish.backend import Device
from burnish.capture.tape import Tape
from burnish.capture.watch import called
from burnish.kernels import library
from burnish.nn.core.param import Stored
from burnish.plan.cpu import SamplingTape
from burnish.plan.cuda import WholeTape
from burnish.tensor import Tensor

_CPU = Device("cpu")


def accepted(function: Any) -> frozenset[int | str]:
    """The names and places of the arguments that a module's `accepts` makes tensors."""
    forward: Any = getattr(type(function), "forward", None)
    accepts = getattr(forward, "inputs", None)
    if accepts is None:
        return frozenset()
    _, *names = inspect.signature(forward).parameters
    return frozenset([*accepts, *map(names.index, accepts)])


def with_open(
    function: Any, args: Any, options: Any, is_open: Callable[[Any], bool]
) -> tuple[Callable[..., Any], list[Any]]:
    """A function of those tensors of a call that are open; all else is as it is.

    Returns it and the tensors.
    """
    tensors: list[Any] = []

    def hole(item: Any) -> Any:
        if isinstance(item, Variable) and is_open(item):
            tensors.append(item)
            return _Hole(len(tensors) - 1)
        return item

    shape = mapped((args, options), hole)

    def opened(*given: Any) -> Any:
        own_args, own_options = mapped(
            shape, lambda item: given[item.place] if isinstance(item, _Hole) else item
        )
        return called(function, own_args, own_options)

    opened.__name__ = getattr(function, "__name__", type(function).__name__)
    return opened, tensors


class _Hole:
    """The index of a tensor among arguments."""

    def __init__(self, place: int):
        self.place = place


def taken(plan: Any, given: Any) -> Any:
    """The tensors of a call that its plan takes."""
    if not plan.by_value:
        return given
    return [each for each in given if not is_number(each)]


def is_number(each: Any) -> bool:
    """Whether a tensor is one whole number or truth value, which Python may read."""
    return not each.shape and each.dtype.kind in "biu"


def numbers(given: list[Any]) -> tuple[Any, ...]:
    """The values of those tensors, which a plan by value is made for."""
    return tuple(each.data.item() for each in given if is_number(each))


def unfit(places: set[Device], given: list[Any]) -> str:
    """Why no plan can have tensors on these devices; "" where one can."""
    if places <= {_CPU}:
        known = library() is not None
        return "" if known else "there are no kernels; burnish kernels info says why"
    names = ", ".join(sorted(f"'{place}'" for place in places))
    if len(places) > 1:
        return f"{names}: a plan is for one device"
    if any(place.is_autodiff for place in places):
        return f"{names}: plans are for inference"
    packed = [each for each in given if type(each) is not Tensor]
    if any(not isinstance(each, Stored) for each in packed):
        return f"{names}: a plan takes plain tensors"
    return ""


def are_on_cpu(given: list[Any]) -> bool:
    return all(each.device.kind == "cpu" for each in given)


def tape(places: set[Device]) -> Tape:
    """A tape that records calls, for kernels of these devices."""
    return SamplingTape() if places <= {_CPU} else WholeTape()
