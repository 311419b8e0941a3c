"""Printing of tensors: the values as NumPy prints them, then shape and dtype."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Array, Device, on_host


class _Options(NamedTuple):
    precision: int | None = None
    threshold: int = 1000
    edgeitems: int = 3


_options = _Options()


def set_printoptions(
    *, precision: int | None = None, threshold: int = 1000, edgeitems: int = 3
) -> None:
    """Set how tensors are printed; settings that are not named get their defaults.

    precision: decimal places of floats, None for as many as they need (up to 8).
    threshold: with more elements than this the middle is left out, and `edgeitems` of
    each axis are shown at both ends.
    """
    global _options
    _options = _Options(precision, threshold, edgeitems)


def describe(name: str, array: Array, device: Device, spec: str = "") -> str:
    """`Tensor([1., 2.], shape=(2,), dtype=float32)`, the device where it is not cpu.

    spec: how each element is formatted, such as ".2f".
    """
    values = np.array2string(
        on_host(array),
        precision=_options.precision,
        threshold=_options.threshold,
        edgeitems=_options.edgeitems,
        separator=", ",
        prefix=f"{name}(",
        formatter={"all": lambda value: format(value, spec)} if spec else None,
    )
    return f"{name}({values}, {kind(array, device)})"


def kind(like: Any, device: Device) -> str:
    """`shape=(2,), dtype=float32, device='cuda:0'` of anything with shape and dtype."""
    words = f"shape={tuple(like.shape)}, dtype={like.dtype}"
    return words if str(device) == "cpu" else f"{words}, device='{device}'"
