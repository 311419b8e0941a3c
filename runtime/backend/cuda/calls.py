"""Calls by signature: what arrays alike have in common is decided once.

`prepare(*args, **options)` looks at arguments and returns a function of the arrays, or
None where no kernel takes them. The function allocates and launches; it may depend on
the signature alone: dtypes, shapes, strides, alignments, Python's numbers and options,
the GPU of the arrays, which is the current one in both, and the settings of
`workspace`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from burnish.backend.cuda.libraries import workspace
from burnish.errors import DeviceError

Run: TypeAlias = Callable[..., Any]
"""A function of a call's positional arguments, for one signature."""

_MANY = 4096  # signatures that a thread remembers


class _Held(threading.local):
    """State of a thread: cublasLt's descriptors hold the bias of one call."""

    def __init__(self) -> None:
        self.ready: dict[tuple[Any, ...], Run | None] = {}


_held = _Held()


def called(
    prepare: Callable[..., Run | None], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """What the prepared function gives for these arguments.

    None without an array of CuPy's among them, and where no kernel takes them.
    """
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return None
    array = cupy.ndarray
    key: list[Any] = [prepare, workspace.held.settings]
    found, ends = False, 0
    for arg in args:
        kind = type(arg)
        if kind is array:
            key.append(_arranged(arg))
            if not arg._c_contiguous:
                key.append(arg.strides)
            ends |= arg.data.ptr
            found = True
        elif arg is None:
            key.append(None)
        elif kind is float:
            key += (kind, _key_of(arg))
        elif kind in _NUMBERS:
            key += (kind, arg)
        elif isinstance(arg, np.generic):
            key += (kind, repr(arg))
        else:
            return None
    if not found:
        return None
    if gpus() > 1:
        key.append(gpu_of(args))
    if ends & _ALIGNED:
        key += [_alignment(arg) for arg in args if type(arg) is array]
    for name, value in options.items():
        kind = type(value)
        key += (name, kind, _key_of(value) if kind is float else value)
    ready = _held.ready
    signature = tuple(key)
    try:
        run = ready[signature]
    except KeyError:
        if len(ready) >= _MANY:
            ready.clear()
        run = ready[signature] = _prepared(prepare, args, options)
    except TypeError:  # an option without a hash: nothing is remembered
        run = _prepared(prepare, args, options)
    return None if run is None else run(*args)


def _prepared(
    prepare: Callable[..., Run | None], args: tuple[Any, ...], options: dict[str, Any]
) -> Run | None:
    """A function that runs on the GPU of these arrays, whatever the current one is."""
    if gpus() == 1:
        return prepare(*args, **options)
    from cupy.cuda import Device, runtime

    place = gpu_of(args)
    with Device(place):
        run = prepare(*args, **options)
    if run is None:
        return None

    def placed(*args: Any) -> Any:
        if runtime.getDevice() == place:
            return run(*args)
        with Device(place):
            return run(*args)

    return placed


@functools.cache
def gpus() -> int:
    """How many GPUs CuPy finds."""
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def gpu_of(args: tuple[Any, ...]) -> int | None:
    """The number of the GPU that CuPy's arrays are on; None for none of them.

    Raises DeviceError where they are on several.
    """
    array = sys.modules["cupy"].ndarray
    places = {arg.data.device_id for arg in args if isinstance(arg, array)}
    if len(places) > 1:
        names = " and ".join(f"'cuda:{place}'" for place in sorted(places))
        raise DeviceError(
            f"expected arrays on one GPU, got some on {names}; "
            f"move tensors with .to(device)"
        )
    return places.pop() if places else None


def elsewhere(args: tuple[Any, ...]) -> Any:
    """What makes the GPU of CuPy's arrays the current one; None where it is."""
    if gpus() == 1 or (place := gpu_of(args)) is None:
        return None
    from cupy.cuda import Device, runtime

    return None if runtime.getDevice() == place else Device(place)


def once(prepare: Callable[..., Run | None]) -> Run:
    """A part of a prepared function, prepared for the arrays of its first call.

    The arrays of later calls have to be like them, as they are where the whole
    function's arrays are alike.
    """
    found: list[Run | None] = []

    def run(*args: Any) -> Any:
        if not found:
            found.append(prepare(*args))
        return None if found[0] is None else found[0](*args)

    return run


_NUMBERS = (int, bool, str)
_arranged = attrgetter("dtype", "shape", "_c_contiguous")
_ALIGNED = 255  # bits of an address; CuPy's allocations have none of them


def _key_of(value: float) -> Any:
    """A number as a part of a key: -0.0 is not 0.0, and NaN is itself."""
    return value if abs(value) > 0 else repr(value)


def _alignment(array: Any) -> int:
    """The lowest of these bits that the address of an array has; 0 for none."""
    place = array.data.ptr
    return int(place & -place & _ALIGNED)
