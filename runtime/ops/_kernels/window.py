"""Sliding windows over spatial axes: their geometry, shared by conv and pool.

Legend: N batch, C channels, *S the input's sizes, *K the kernel's, *P the output's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from burnish.backend import Array, namespace
from burnish.errors import InputError

Pairs = tuple[tuple[int, int], ...]


class Window(NamedTuple):
    """How a kernel moves: one entry for each spatial axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: Pairs
    out: tuple[int, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """What the dilated kernel covers along each axis."""
        return _spans(self.kernel, self.dilation)

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Every place in the kernel, in row-major order."""
        return itertools.product(*map(range, self.kernel))

    def under(self, offset: tuple[int, ...]) -> tuple[Any, ...]:
        """The index of what the kernel's place `offset` sees in the padded input."""
        return (
            ...,
            *(
                slice(o * d, o * d + s * (p - 1) + 1, s) if p else slice(0)
                for o, d, s, p in zip(
                    offset, self.dilation, self.stride, self.out, strict=True
                )
            ),
        )


def each(value: Any, rank: int, name: str) -> tuple[int, ...]:
    """One number for every spatial axis: 2 -> (2, 2)."""
    if not isinstance(value, tuple | list):
        return (value,) * rank
    if len(value) != rank:
        raise InputError(f"{name}: expected {rank} numbers or one, got {value}")
    return tuple(value)


def window(
    where: str,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool = False,
) -> Window:
    """The geometry of a kernel over `sizes`.

    padding: a number, one for each axis, (before, after) pairs, or "valid", "same"
    (as PyTorch; the odd one goes after), "same_upper", "same_lower" (as ONNX).
    ceil_mode: windows may end behind the padding, but none starts there.
    """
    rank = len(kernel)
    if len(sizes) != rank:
        raise InputError(
            f"{where}: expected a kernel for {len(sizes)} axes, got {tuple(kernel)}"
        )
    stride = each(stride, rank, f"{where}: stride")
    dilation = each(dilation, rank, f"{where}: dilation")
    if any(n < 1 for n in (*kernel, *stride, *dilation)):
        raise InputError(
            f"{where}: expected kernel, stride and dilation of 1 or more, "
            f"got {tuple(kernel)}, {stride} and {dilation}"
        )
    spans = _spans(kernel, dilation)
    pads = pairs(padding, sizes, spans, stride, where)
    out, ends = [], []
    for n, span, s, (before, after) in zip(sizes, spans, stride, pads, strict=True):
        room = n + before + after - span
        if room < 0 and not (ceil_mode and room > -s):
            raise InputError(
                f"{where}: a kernel that spans {spans} is larger than the "
                f"input's {tuple(sizes)} with padding {pads}"
            )
        count = room // s + 1
        if ceil_mode and room % s and count * s < n + before:
            count += 1
        out.append(count)
        ends.append(after + max(0, (count - 1) * s - room))
    pads = tuple((b, a) for (b, _), a in zip(pads, ends, strict=True))
    return Window(kernel, stride, dilation, pads, tuple(out))


def _spans(kernel: Any, dilation: Any) -> tuple[int, ...]:
    return tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))


def pairs(padding: Any, sizes: Any, spans: Any, stride: Any, where: str) -> Pairs:
    """`padding` in any of its spellings as (before, after) for every axis."""
    if isinstance(padding, int | np.integer):
        return ((int(padding), int(padding)),) * len(spans)
    if not isinstance(padding, str):
        if len(padding) != len(spans):
            raise InputError(
                f"{where}: expected padding for {len(spans)} axes, got {padding}"
            )
        return tuple(
            (int(p), int(p)) if isinstance(p, int | np.integer) else (p[0], p[1])
            for p in padding
        )
    if padding == "valid":
        return ((0, 0),) * len(spans)
    if padding == "same":
        return tuple(((n - 1) // 2, n // 2) for n in spans)
    if padding not in ("same_upper", "same_lower"):
        raise InputError(
            f"{where}: expected padding as numbers, pairs, 'same' or 'valid', "
            f"got {padding!r}"
        )
    totals = [
        max(0, (-(-n // s) - 1) * s + span - n)
        for n, span, s in zip(sizes, spans, stride, strict=True)
    ]
    halves = [(t // 2, t - t // 2) for t in totals]
    return tuple(h if padding == "same_upper" else h[::-1] for h in halves)


def padded(x: Array, pads: Pairs, value: Any = 0) -> Array:
    """x with `value` around its last axes; negative numbers crop."""
    if not any(map(any, pads)):
        return x
    lead = x.ndim - len(pads)
    sizes = x.shape[lead:]
    shape = [n + b + a for n, (b, a) in zip(sizes, pads, strict=True)]
    xp = namespace(x)
    out = xp.full((*x.shape[:lead], *shape), value, x.dtype)
    out[_inside(shape, pads, 1)] = x[_inside(sizes, pads, -1)]
    return out


def _inside(sizes: Any, pads: Pairs, sign: int) -> tuple[Any, ...]:
    return (
        ...,
        *(
            slice(max(sign * before, 0), max(n - max(sign * after, 0), 0))
            for n, (before, after) in zip(sizes, pads, strict=True)
        ),
    )


def cropped(x: Array, pads: Pairs) -> Array:
    """The inverse of `padded`: x without its `pads`."""
    return padded(x, tuple((-b, -a) for b, a in pads))


def columns(x: Array, w: Window) -> Array:
    """Every place's view of the padded x: (N, C, *S) -> (N, C, *K, *P), no copy."""
    lead = x.ndim - len(w.kernel)
    strides = x.strides[lead:]
    return namespace(x).lib.stride_tricks.as_strided(
        x,
        (*x.shape[:lead], *w.kernel, *w.out),
        (
            *x.strides[:lead],
            *(t * d for t, d in zip(strides, w.dilation, strict=True)),
            *(t * s for t, s in zip(strides, w.stride, strict=True)),
        ),
    )


def lowest(dtype: Any) -> Any:
    """The smallest value of a dtype: what padding is when the largest wins."""
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min
