"""Solve for the file's tensors: which values give these weights.

Elements whose weight is as it was keep their bits. A weight that cannot be given is an
error with its name, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from burnish.codegen.errors import ExportError
from burnish.codegen.weights.dequantized import BITS
from burnish.codegen.weights.entries import Entry
from burnish.codegen.weights.origin import Origin, exchanged
from burnish.codegen.writers.elements import (
    Places,
    copied_from,
    origins_of,
    scaled_from,
)

_WHOLE = {*BITS, ir.DataType.INT32}
"""The dtypes of weights and biases in files of quantized models."""

_NEAR = {2: 1e-2, 4: 1e-5, 8: 1e-12}


@dataclass
class Asked:
    """One weight: old values, new values, and the origins of its elements."""

    entry: Entry
    before: np.ndarray
    after: np.ndarray
    origins: list[Origin]
    changed: np.ndarray = field(init=False)
    places: Places | None = None

    def __post_init__(self) -> None:
        self.changed = _differs(self.before, self.after)


def solved(
    entries: Sequence[Entry], given: Mapping[str, np.ndarray]
) -> dict[Origin, np.ndarray]:
    """The new values of every tensor of the file that has some."""
    asked = [_asked(entry, given[entry.path]) for entry in entries]
    new: dict[Origin, np.ndarray] = {}
    wanted = {o: None for one in asked if one.changed.any() for o in one.origins}
    concerned = [one for one in asked if any(o in wanted for o in one.origins)]
    readers: dict[Origin, int] = {}
    for one in concerned:
        for origin in one.origins:
            readers[origin] = readers.get(origin, 0) + 1
    for one in concerned:
        one.places = _placed(one, readers)
        if one.changed.any():
            _write(one, new)
    _check(concerned, new)
    return new


def _asked(entry: Entry, given: np.ndarray) -> Asked:
    before, origins = origins_of(entry)
    stored = before.astype(given.dtype)  # of a file in half precision, rounded as it is
    after = np.where(_differs(stored, given), given.astype(before.dtype), before)
    asked = Asked(entry, before, after, origins)
    if asked.changed.any() and not origins:
        raise ExportError(
            f"{entry.path}: expected a weight that is read from the model file, this "
            f"one was made while the source was written; leave it as it was, or write "
            f"a file of the module itself: burnish.codegen.writers.export"
        )
    return asked


def _placed(one: Asked, readers: Mapping[Origin, int]) -> Places | None:
    """The origins of elements; None for unneeded elements of unknown origin."""
    places = copied_from(one.entry, one.origins)
    if (places.known | ~one.changed).all():
        return places
    own = sorted(one.origins, key=lambda o: (readers[o], -o.size))
    for origin in own:
        is_small = origin.dtype in _WHOLE
        if origin.size == one.before.size and (
            is_small or origin.dtype.is_floating_point()
        ):
            scaled = scaled_from(one.entry, origin)
            if scaled is not None:
                return scaled
    names = ", ".join(repr(origin.origin) for origin in one.origins)
    raise ExportError(
        f"{one.entry.path}: expected a weight that is a tensor of the model file in "
        f"another layout, or scaled; this one is computed from {names} in a way that "
        f"cannot be undone; leave it as it was"
    )


def _write(one: Asked, new: dict[Origin, np.ndarray]) -> None:
    """Put the changed elements where they came from."""
    places = one.places
    assert places is not None
    for at, origin in enumerate(places.origins):
        here = one.changed & places.known & (places.which == at)
        if not here.any():
            continue
        values = one.after[here]
        if places.factor is not None and places.summand is not None:
            wide = values.astype(np.float64) - places.summand[here]
            values = wide / places.factor[here]
            if origin.dtype in _WHOLE:
                values = np.rint(values)
        if origin not in new:
            new[origin] = np.array(origin.held.numpy())
        flat = new[origin].reshape(-1)
        if flat.dtype.kind in "iu":
            _check_range(one, origin, values, np.iinfo(flat.dtype))
        flat[places.number[here]] = values.astype(flat.dtype)


def _check_range(
    one: Asked, origin: Origin, values: np.ndarray, whole: np.iinfo
) -> None:
    if values.size and (values.min() < whole.min or values.max() > whole.max):
        raise ExportError(
            f"{one.entry.path}: expected values that {origin.origin!r} of the model "
            f"file can hold with its scales, whole numbers from {whole.min} to "
            f"{whole.max}, got some from {values.min():g} to {values.max():g}"
        )


def _check(concerned: Sequence[Asked], new: Mapping[Origin, np.ndarray]) -> None:
    """Raises ExportError where a weight does not come out as it is to be."""
    for one in concerned:
        with exchanged(new):
            got = np.asarray(one.entry.weight.read()).reshape(one.before.shape)
        wrong = _differs(got, one.after)
        if one.places is not None and one.places.factor is not None:
            wide = np.stack([got.astype(np.float64), one.after.astype(np.float64)])
            near = _NEAR.get(got.dtype.itemsize, 1e-2) * np.abs(wide).max()
            if any(origin.dtype in _WHOLE for origin in one.places.origins):
                near = near + np.abs(one.places.factor) / 2  # half a whole number
            wrong &= np.abs(wide[0] - wide[1]) > near
        if wrong.any():
            raise ExportError(_conflict(one, concerned, new))


def _conflict(
    one: Asked, concerned: Sequence[Asked], new: Mapping[Origin, np.ndarray]
) -> str:
    shared = [o for o in one.origins if o in new]
    others = [
        other.entry.path
        for other in concerned
        if other is not one and any(o in other.origins for o in shared)
    ]
    names = ", ".join(repr(o.origin) for o in shared)
    if not others:
        return (
            f"{one.entry.path}: expected values that {names} of the model file can "
            f"hold; elements that are one there differ now"
        )
    return (
        f"{one.entry.path}: expected the same values as in {', '.join(others)}; in "
        f"the model file they are one tensor, {names}, and they differ now"
    )


def _differs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where the bits differ, element by element."""
    if one.dtype.itemsize not in (1, 2, 4, 8):
        return np.asarray(one != other)
    word = np.dtype(f"u{one.dtype.itemsize}")
    a, b = (np.ascontiguousarray(x).reshape(x.shape) for x in (one, other))
    return np.asarray(a.view(word) != b.view(word))
