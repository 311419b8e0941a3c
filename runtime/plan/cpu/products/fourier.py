"""Lower discrete Fourier transforms."""

from __future__ import annotations

import math

import numpy as np

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Node, Value, constant

_LARGEST = 31
"""The largest prime factor of a length, as in the kernel: NumPy is faster beyond it."""

_LONGEST = 4096
"""The longest signal whose numbers a core keeps in its cache, a vector of signals."""

_ALONE = 1024
"""The longest of fewer signals than fill a quarter of a vector."""


@lower("dft")
def dft(b: Builder, node: Node) -> None:
    """Signals along an axis of x (..., 1) or (..., 2)."""
    (x,), y, options = node.args, node.result, node.options
    need(isinstance(x, Value), "its signals are known before")
    check(node, x)
    axis, is_inverse = options["axis"] % len(x.shape), bool(options["inverse"])
    is_half = is_inverse and bool(options["onesided"])
    places, width = x.shape[axis], x.shape[-1]
    length = options["length"]
    if length is None:
        length = 2 * (places - 1) if is_half else places
    need(y.size and length > 0, "it has no elements")
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 : -1])
    longest = _ALONE if outer * inner < LANES // 4 else _LONGEST
    need(length <= longest, "NumPy is faster at signals as long")
    need(_largest_factor(length) <= _LARGEST, "NumPy is faster at such lengths")
    is_packed = (
        width == 1 and options["onesided"] and not is_inverse and length % 2 == 0
    )
    work = 5 * outer * inner * length * length.bit_length()
    shares, room = b.shares(work / 8, outer * inner), 2 * 2 * LANES * (length + 1)
    b.add(
        "dft", shares, x=b.spot(x), table=b.constant(constant(_roots(length))),
        out=b.result(y), space=b.new(4 * room * shares),
        fault=b.fault() if b.may_fault else None, outer=outer, inner=inner,
        places=places, length=length, results=y.shape[axis], room=room, x_pair=width,
        is_packed=is_packed, is_half=is_half, is_inverse=is_inverse, flops=work,
    )  # fmt: skip


def _largest_factor(n: int) -> int:
    """The largest prime factor of n, 1 of 1."""
    largest, factor = 1, 2
    while n > 1:
        if n % factor:
            factor += 1
        else:
            n, largest = n // factor, factor
    return largest


def _roots(n: int) -> np.ndarray:
    """The n numbers around the unit circle, clockwise: (n, 2)."""
    angle = np.arange(n) * (-2 * np.pi / n)
    return np.stack([np.cos(angle), np.sin(angle)], -1).astype(np.float32)
