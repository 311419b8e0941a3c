"""Padding and cropping at the ends of axes."""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import axes_of

Index = tuple[slice, ...]


@composed
def pad(
    x: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    axes: Any = None,
) -> Array:
    """x with more at its ends: ((before, after), ...), one pair an axis.

    pad_width: one pair, or one number, is for every axis. mode: "constant", "reflect",
    "edge" or "wrap", as `numpy.pad`. Negative numbers take away, before what is left
    continues at the other end. axes: which ones the pairs are for, all unless given.
    """
    if mode not in _MODES:
        raise InputError(f"pad: expected mode among {_MODES}, got {mode!r}")
    pairs = pairs_of(pad_width, len(x.shape), axes)
    if mode == "constant":
        return pad_constant(x, pads=pairs, value=constant_values)
    for axis, pair in enumerate(pairs):
        if pair != (0, 0):
            x = pad_repeated(x, runs=_runs(_places(x, axis, pair, mode)), axis=axis)
    return x


_MODES = ("constant", "reflect", "edge", "wrap")


def pairs_of(pads: Any, rank: int, axes: Any) -> tuple[tuple[int, int], ...]:
    """A pair for every axis; raises InputError for anything else."""
    chosen = axes_of(axes, rank)
    try:
        given = _for_each(pads, len(chosen))
        found = dict(zip(chosen, given, strict=True))
    except (TypeError, ValueError):
        raise InputError(
            f"pad: expected a pair (before, after) for each of {len(chosen)} axes, "
            f"got {pads!r}"
        ) from None
    return tuple(found.get(axis, (0, 0)) for axis in range(rank))


def _for_each(pads: Any, count: int) -> list[tuple[int, int]]:
    """A pair for each of so many axes, from one number or one pair as well."""
    if np.ndim(pads) == 0:
        pads = (pads, pads)
    if np.ndim(pads) == 1:
        pads = [pads] * count
    return [(index(before), index(after)) for before, after in pads]


def _places(x: Any, axis: int, pair: tuple[int, int], mode: Any) -> np.ndarray:
    """The index along an axis that each padded position copies."""
    (before, after), size = pair, x.shape[axis]
    if size == 0 and max(pair) > 0:
        raise InputError(f"pad: expected elements along axis {axis}, got x {x.shape}")
    kept = slice(max(-before, 0), size - max(-after, 0))
    grown = (max(before, 0), max(after, 0))
    if mode == "wrap":
        return np.pad(np.arange(size)[kept], grown, mode)
    places = np.pad(np.arange(size), grown, mode)
    return places[max(-before, 0) : len(places) - max(-after, 0)]


class Run(NamedTuple):
    """`length` places of a padded axis from `target` on, and what they repeat."""

    target: int
    start: int
    step: int  # 1, -1 or 0
    length: int

    def padded(self, axis: int) -> Index:
        return _along(axis, slice(self.target, self.target + self.length))

    def seen(self, axis: int) -> Index:
        """The places of the axis before padding, one where the step is 0."""
        if not self.step:
            return _along(axis, slice(self.start, self.start + 1))
        stop = self.start + self.step * self.length
        return _along(axis, slice(self.start, stop if stop >= 0 else None, self.step))


@operator
def pad_repeated(x, *, runs: tuple[Run, ...], axis: int) -> Array:
    """x with more along `axis`, all of it taken from x itself; see `pad`."""
    shape = (*x.shape[:axis], sum(run.length for run in runs), *x.shape[axis + 1 :])
    y = namespace(x).empty(shape, x.dtype)
    for run in runs:
        y[run.padded(axis)] = x[run.seen(axis)]
    return y


@pad_repeated.vjp
def _(g, y, x, *, runs, axis):
    return fold_repeated(g, runs=runs, axis=axis, size=x.shape[axis])


@operator
def fold_repeated(y, *, runs: tuple[Run, ...], axis: int, size: int) -> Array:
    """The adjoint of `pad_repeated`: what repeats an element is added to it."""
    shape = (*y.shape[:axis], size, *y.shape[axis + 1 :])
    x = namespace(y).zeros(shape, y.dtype)
    for run in runs:
        part = y[run.padded(axis)]
        x[run.seen(axis)] += part if run.step else part.sum(axis=axis, keepdims=True)
    return x


@fold_repeated.vjp
def _(g, x, y, *, runs, axis, size):
    return pad_repeated(g, runs=runs, axis=axis)


def _runs(places: np.ndarray) -> tuple[Run, ...]:
    """Places that go up, down or stay, as few runs of them as there are."""
    runs, steps, target = [], np.diff(places), 0
    turns = np.flatnonzero(steps[1:] != steps[:-1]) + 1
    while target < len(places):
        step, end = 1, target
        if target < len(steps) and abs(steps[target]) <= 1:
            step = int(steps[target])
            later = turns[np.searchsorted(turns, target, side="right") :]
            end = int(later[0]) if len(later) else len(steps)
        runs.append(Run(target, int(places[target]), step, end - target + 1))
        target = end + 1
    return tuple(runs)


def _along(axis: int, places: slice) -> Index:
    return (*(slice(None),) * axis, places)


@operator
def pad_constant(x, *, pads: tuple[tuple[int, int], ...], value: Any = 0) -> Array:
    """x with `value` around it; see `pad`."""
    shape, source, target = [], [], []
    for n, (before, after) in zip(x.shape, pads, strict=True):
        if n + min(before, 0) + min(after, 0) < 0:
            raise InputError(
                f"pad: expected to take at most {n} from x {x.shape}, got {pads}"
            )
        shape.append(n + before + after)
        source.append(slice(max(-before, 0), n - max(-after, 0)))
        kept = n - max(-before, 0) - max(-after, 0)
        target.append(slice(max(before, 0), max(before, 0) + kept))
    y = namespace(x).full(shape, value, x.dtype)
    y[tuple(target)] = x[tuple(source)]
    return y


@pad_constant.vjp
def _(g, y, x, *, pads, value):
    return pad_constant(g, pads=tuple((-before, -after) for before, after in pads))
