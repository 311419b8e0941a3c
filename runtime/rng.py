"""One seedable source of random numbers for initial weights, dropout and sampling.

Initial weights have a stream of their own, so that everything else draws the same
whether weights are made early or at their first use.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from burnish.backend import Array, Device
from burnish.backend.cuda.elementwise import random
from burnish.backend.philox import drawn_mask, mask_bound

_streams: tuple[np.random.Generator, np.random.Generator] | None = None


class _Drawing(threading.local):
    initial = False
    observer: Callable[[], None] | None = None


_drawing = _Drawing()


def seed(value: int) -> None:
    """Start every later draw of this process from `value`, on every device."""
    if _drawing.observer is not None:
        _drawing.observer()
    _start(np.random.default_rng(value))


def _start(
    first: np.random.Generator,
) -> tuple[np.random.Generator, np.random.Generator]:
    global _streams
    _streams = first, first.spawn(1)[0]
    return _streams


def generator() -> np.random.Generator:
    """The generator that all draws come from, drawn on the host."""
    if _drawing.observer is not None and not _drawing.initial:
        _drawing.observer()
    return _source()


def _source() -> np.random.Generator:
    # not at import: NumPy loads its random numbers on demand
    streams = _streams or _start(np.random.default_rng())
    return streams[_drawing.initial]


@contextlib.contextmanager
def initial() -> Iterator[None]:
    """In the `with` block draws come from the stream of initial weights."""
    before, _drawing.initial = _drawing.initial, True
    try:
        yield
    finally:
        _drawing.initial = before


@contextlib.contextmanager
def observed(observer: Callable[[], None]) -> Iterator[None]:
    """In the `with` block `observer` is called before every draw of this thread.

    Draws of initial weights do not count. Afterwards the source is where it was.
    """
    before = state()
    _drawing.observer = observer
    try:
        yield
    finally:
        _drawing.observer = None
        restore(before)


def state() -> Any:
    """Where the source is, to draw the same again with `restore`."""
    return _source().bit_generator.state


def restore(state: Any) -> None:
    """Continue from where the source was when `state` was taken."""
    _source().bit_generator.state = state


def is_state(value: Any) -> bool:
    """Whether `restore` takes a value."""
    other: Any = np.random.PCG64(0)
    try:
        other.state = value
    except (KeyError, OverflowError, TypeError, ValueError):
        return False
    return True


def jump(times: int) -> None:
    """Jump to a state that this source would reach only after 2**127 draws each."""
    global _streams
    first, second = _streams or _start(np.random.default_rng())
    bits: Any = first.bit_generator
    _streams = np.random.Generator(bits.jumped(times)), second


def uniform(
    shape: tuple[int, ...], low: float, high: float, dtype: Any, device: Device
) -> Array:
    """Uniform values in [low, high), shape `shape`, on `device`."""
    drawn = device.put(generator().uniform(low, high, shape), dtype)
    if drawn.dtype.kind == "f":  # rounding to a narrow dtype may reach `high`
        kind = drawn.dtype.type
        device.xp.minimum(drawn, np.nextafter(kind(high), kind(low)), out=drawn)
    return drawn


def normal(
    shape: tuple[int, ...], mean: float, std: float, dtype: Any, device: Device
) -> Array:
    """Normal values, shape `shape`, on `device`."""
    return device.put(generator().normal(mean, std, shape), dtype)


def keep_mask(shape: tuple[int, ...], probability: float, device: Device) -> Array:
    """Booleans, True with `probability`, shape `shape`, on `device`.

    They come from a counter-based generator by a key that is drawn on the host: the
    same on a CPU and on a GPU.
    """
    if device.kind == "cuda":
        with device.computing():
            return random.keep_mask(shape, probability, key)
    from burnish.kernels import direct

    count, drawn = prod(shape), key()
    if not direct.usable() or not count:
        return drawn_mask(count, probability, drawn).reshape(shape)
    kept = np.empty(shape, bool)
    direct.launch(
        "keep_mask",
        direct.shares(count),
        key=np.array([drawn], np.uint64),
        out=kept,
        count=count,
        bound=mask_bound(probability),
    )
    return kept


def key() -> int:
    """The key of a counter-based generator's draw."""
    raw: int = generator().bit_generator.random_raw()
    return raw >> 1  # what integers(1 << 63) gives, in a fifth of its time
