"""How tensors are printed: the values as NumPy prints them, then what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, Device, on_host


def describe(name: str, array: Array, device: Device) -> str:
    """`Tensor([1., 2.], shape=(2,), dtype=float32)`, the device where it is not cpu."""
    values = np.array2string(on_host(array), separator=", ", prefix=f"{name}(")
    return f"{name}({values}, {kind(array, device)})"


def kind(like: Any, device: Device) -> str:
    """`shape=(2,), dtype=float32, device='cuda:0'` of anything with shape and dtype."""
    words = f"shape={tuple(like.shape)}, dtype={like.dtype}"
    return words if str(device) == "cpu" else f"{words}, device='{device}'"
