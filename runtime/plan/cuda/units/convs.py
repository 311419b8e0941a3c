"""Convolutions with what follows them, as one launch: batch norm, a sum, a bound."""

from __future__ import annotations

import math
import operator
from typing import Any

from burnish.backend import namespace
from burnish.backend.cuda.convolution import convolution, depthwise, patches
from burnish.backend.cuda.elementwise import fused as elements
from burnish.backend.cuda.layout import is_last, last
from burnish.capture.line import Line, refs
from burnish.capture.ref import Ref
from burnish.nn.core.param import Stored
from burnish.ops._kernels.window import window
from burnish.ops.activation.piecewise import relu, relu6
from burnish.ops.elementwise.arithmetic import add
from burnish.ops.elementwise.clip import clip
from burnish.ops.normalization import batch_norm
from burnish.ops.spatial.conv import conv


class FusedConv:
    """relu(batch_norm(conv(x)) + beside): computes the last line's result, or declines.

    kept: where weights with the batch norm in them are, for all programs of a function.
    before: a convolution whose upper bound this one applies, as it reads its result
    alone; is_open: whether it was left to it.
    """

    def __init__(self, lines: list[Line], fixed: dict[int, Any], kept: dict[Any, Any]):
        first, self._kept = lines[0].call, kept
        self._x, self._place = first.args[0].place, lines[-1].place
        self._options = first.options
        self._own = [_stored(arg, fixed) for arg in (*first.args[1:], None)[:2]]
        self._norm: list[Any] = []
        self._eps, self._beside = 0.0, -1
        self._bounds: tuple[float, float] | None = None
        self.before: FusedConv | None = None
        self.leaves_bound = self.is_open = False
        place = lines[0].place
        for line in lines[1:]:
            call = line.call
            if call.function is batch_norm:
                self._norm = [_stored(arg, fixed) for arg in call.args[1:]]
                self._norm += [None] * (4 - len(self._norm))
                self._eps = call.options.get("eps", 1e-5)
            elif call.function is add:
                self._beside = _other(call.args, place).place
            else:
                self._bounds = bounds(line)
            place = line.place

    def take_bound(self, other: FusedConv) -> None:
        """Apply the upper bound of another one's results, which this one reads."""
        self.before, other.leaves_bound = other, True

    @property
    def reads(self) -> int:
        """The place of the convolution's input."""
        return self._x

    @property
    def by_channel(self) -> bool:
        """Whether every channel has a kernel of its own."""
        groups, shape = self._options.get("groups", 1), self._own[0].shape
        return self._beside < 0 and groups == shape[0] > 1 and shape[1] == 1

    @property
    def is_capped(self) -> bool:
        """Whether results are between 0 and an upper bound."""
        return (
            self._bounds is not None and 0 == self._bounds[0] < self.ceiling < math.inf
        )

    def __call__(self, values: list[Any]) -> bool:
        held = values[self._x]
        x, options = held.data, self._options
        shape = self._own[0].shape
        groups = options.get("groups", 1)
        by_channel = self._beside < 0 and depthwise.fits(x, self._own[0], groups)
        ceiling = None
        if self.before is not None and self.before.is_open:
            ceiling = self.before.ceiling
            if not by_channel:
                x = elements.evaluated(_held, (x, 0.0, ceiling))
                held = values[self._x] = type(held).wrap(x, held.device)
        if not x.size or not (by_channel or convolution.pays(x, groups)):
            return False
        w = window("conv", x.shape[2:], shape[2:], *map(options.get, *_GEOMETRY))
        plain = groups == 1 and patches.fits(w) and not is_last(x)
        form = "taps" if by_channel else "plain" if plain else "last"
        weight, bias = self._weights(x.dtype, form)
        if by_channel:
            y = depthwise.depthwise(x, weight, w, bias, self._bounds, ceiling)
        else:
            beside = None if self._beside < 0 else values[self._beside].data
            if beside is not None and beside.dtype != x.dtype:
                return False
            self.is_open = self.leaves_bound
            is_relu = self.is_open or self._bounds == (0.0, math.inf)
            y = convolution.conv(x, weight, w, groups, bias, beside, is_relu)
            self.is_open = self.is_open and y is not None
            if y is not None and self._bounds is not None and not is_relu:
                y = elements.evaluated(_held, (y, *self._bounds))
        if y is None:
            return False
        values[self._place] = type(held).wrap(y, held.device)
        return True

    @property
    def ceiling(self) -> float:
        """The upper bound of its results."""
        return math.inf if self._bounds is None else self._bounds[1]

    def _weights(self, dtype: Any, form: str) -> tuple[Any, Any]:
        """The weight as kernels read it, and the bias, with the batch norm in them.

        form: "taps", "last" (channels-last) or "plain".
        """
        items = [*self._own, *self._norm]
        arrays = [None if item is None else item.data for item in items]
        key = (*map(id, items), dtype, form, self._eps)
        known, made = self._kept.get(key, ([], None))
        if len(known) != len(arrays) or any(map(operator.is_not, known, arrays)):
            made = _normed(arrays, self._eps)
            made = [None if part is None else part.astype(dtype) for part in made]
            if form == "taps":
                made[0] = depthwise.taps(made[0])
            elif form == "last":
                made[0] = last(made[0])
            self._kept[key] = arrays, made
        weight, bias = made
        return weight, bias


def _held(y: Any, low: float, high: float) -> Any:
    return namespace(y).clip(y, low, high)


def _normed(arrays: list[Any], eps: float) -> list[Any]:
    """A weight and a bias, with the batch norm of the other arrays in them."""
    weight, bias, *norm = arrays
    if not norm:
        return [weight, bias]
    mean, var, scale, shift = norm
    by = (var + eps) ** -0.5
    if scale is not None:
        by = by * scale
    moved = -mean * by if shift is None else shift - mean * by
    if bias is not None:
        moved = moved + bias * by
    return [weight * by.reshape(-1, *(1,) * (weight.ndim - 1)), moved]


_GEOMETRY = (("stride", "padding", "dilation"), (1, 0, 1))


def bounds(line: Line) -> tuple[float, float] | None:
    """The bounds to which a call clamps its argument; None for another call."""
    call = line.call
    if call.function is relu:
        return 0.0, math.inf
    if call.function is relu6:
        return 0.0, 6.0
    if call.function is clip and len(call.args) == 3:
        low, high = call.args[1:]
        if isinstance(low, int | float) and isinstance(high, int | float):
            return float(low), float(high)
    return None


def chain(line: Line, readers: dict[int, list[Line | None]], fixed: Any) -> list[Line]:
    """A convolution of stored weights and the calls that can be computed with it."""
    call = line.call
    if call.function is not conv or not line.plain or line.place < 0:
        return []
    if not isinstance(call.args[0], Ref) or not all(
        isinstance(fixed.get(r.place), Stored) for r in refs(call.args[1:])
    ):
        return []
    found, normed, beside = [line], False, False
    while True:
        place = found[-1].place
        behind = readers.get(place, [])
        last = behind[0] if len(behind) == 1 else None
        if last is None or not last.plain or last.place < 0:
            return found
        then = last.call
        if then.function is batch_norm and not (normed or beside):
            given = refs(then.args[1:])
            if then.args[0].place != place or not all(
                isinstance(fixed.get(ref.place), Stored) for ref in given
            ):
                return found
            normed = True
        elif then.function is add and not beside:
            other = _other(then.args, place)
            if not isinstance(other, Ref) or other.place in fixed:
                return found
            if other.shape != last.shape or other.dtype != then.results.dtype:
                return found
            beside = True
        elif bounds(last) is not None:
            return [*found, last]
        else:
            return found
        found.append(last)


def _other(args: Any, place: int) -> Any:
    """The argument of a sum that is not at a place; None where both are."""
    others = [a for a in args if not (isinstance(a, Ref) and a.place == place)]
    return others[0] if len(others) == 1 else None


def _stored(arg: Any, fixed: dict[int, Any]) -> Any:
    return fixed[arg.place] if isinstance(arg, Ref) else None
