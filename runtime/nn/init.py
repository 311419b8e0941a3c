"""Initializers: functions `(shape, dtype, device) -> array`, or makers of them.

    layer.weight = nn.Param(init.orthogonal(), layer.weight.shape)

Weights are (out, in, *kernel): fan_in is in * kernel, fan_out is out * kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish import rng
from burnish.backend import Array, Device
from burnish.errors import InputError
from burnish.habits import missing

Initializer = Callable[[tuple[int, ...], Any, Device], Array]


def constant(value: float) -> Initializer:
    """Every element `value`."""
    return lambda shape, dtype, device: device.xp.full(shape, value, dtype)


def zeros(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """Every element 0."""
    return device.xp.zeros(shape, dtype)


def ones(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """Every element 1."""
    return device.xp.ones(shape, dtype)


def loaded(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """No values: of a `Buffer(..., persistent=False)` that a weights file brings.

    Raises InputError, so that nothing is computed with numbers that nobody gave.
    """
    raise InputError(
        f"a table of shape {shape}, {np.dtype(dtype)}: expected values from the file "
        f"of weights that was generated with the source, got none; make the model "
        f"with Model.from_file(), which reads them"
    )


def uniform(bound: float, low: float | None = None) -> Initializer:
    """Uniform in [-bound, bound), or in [low, bound)."""
    start = -bound if low is None else low
    return lambda shape, dtype, device: rng.uniform(shape, start, bound, dtype, device)


def normal(std: float = 1.0, mean: float = 0.0) -> Initializer:
    """Normal with this deviation and mean."""
    return lambda shape, dtype, device: rng.normal(shape, mean, std, dtype, device)


def trunc_normal(
    std: float = 1.0, mean: float = 0.0, a: float = -2.0, b: float = 2.0
) -> Initializer:
    """Normal with this deviation and mean, but nothing below a or above b."""
    if not a < b:
        raise InputError(f"trunc_normal: expected a < b, got {a} and {b}")

    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        drawn = _within((a - mean) / std, (b - mean) / std, prod(shape))
        values = (mean + std * drawn).clip(a, b)
        return device.put(values.reshape(shape), dtype)

    return make


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain that compensates for the nonlinearity after a layer.

    param: the slope of "leaky_relu" below 0, 0.01 unless given.
    """
    if nonlinearity == "leaky_relu":
        return sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise InputError(
            f"calculate_gain: expected one of {[*_GAINS, 'leaky_relu']}, "
            f"got {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


def kaiming_uniform(
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    gain: float | None = None,
) -> Initializer:
    """Uniform with deviation gain / sqrt(fan): keeps the scale from layer to layer.

    mode: "fan_in" for values, "fan_out" for gradients. gain: `calculate_gain` of the
    nonlinearity and its slope `a` unless given.
    """
    return _scaled_uniform(_kaiming(a, mode, nonlinearity, gain))


def kaiming_normal(
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    gain: float | None = None,
) -> Initializer:
    """Normal with the deviation of `kaiming_uniform`."""
    return _scaled_normal(_kaiming(a, mode, nonlinearity, gain))


def xavier_uniform(gain: float = 1.0) -> Initializer:
    """Uniform with deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return _scaled_uniform(lambda ins, outs: gain * sqrt(2 / (ins + outs)))


def xavier_normal(gain: float = 1.0) -> Initializer:
    """Normal with deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return _scaled_normal(lambda ins, outs: gain * sqrt(2 / (ins + outs)))


def orthogonal(gain: float = 1.0) -> Initializer:
    """A matrix (out, in * kernel) with orthonormal rows or columns, times gain."""

    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        _expect("orthogonal", shape, 1, None)
        rows, width = shape[0], prod(shape[1:])
        tall = (max(rows, width), min(rows, width))
        q, r = np.linalg.qr(rng.generator().standard_normal(tall))
        q = q * np.sign(np.diagonal(r))
        q = q if rows >= width else q.T
        return device.put(gain * q.reshape(shape), dtype)

    return make


def eye(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """An identity matrix: a linear layer that returns its input."""
    _expect("eye", shape, 2, 2)
    return device.xp.eye(*shape, dtype=dtype)


def tril(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """Matrices with ones on and below their diagonals: what may be looked at."""
    _expect("tril", shape, 2, None)
    return device.put(
        np.broadcast_to(np.tri(shape[-2], shape[-1]), shape).copy(), dtype
    )


def arange(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
    """0, 1, 2, ... along the last axis: the places of a sequence."""
    _expect("arange", shape, 1, None)
    return device.put(np.broadcast_to(np.arange(shape[-1]), shape).copy(), dtype)


def frequencies(theta: float = 10000.0) -> Initializer:
    """1, theta**(-1/n), theta**(-2/n), ... along the last axis, which has n elements.

    By these the angles of rotary positions grow (RoFormer, arXiv:2104.09864).
    """

    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        _expect("frequencies", shape, 1, None)
        row = theta ** (-np.arange(shape[-1]) / max(shape[-1], 1))
        return device.put(np.broadcast_to(row, shape).copy(), dtype)

    return make


def dirac(groups: int = 1) -> Initializer:
    """A convolution's kernel that hands on its input, as far as there are outputs."""

    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        _expect("dirac", shape, 3, 5)
        if shape[0] % groups:
            raise InputError(f"dirac: expected a multiple of {groups}, got {shape[0]}")
        outs = shape[0] // groups
        same = np.arange(min(outs, shape[1]))
        weight = np.zeros((groups, outs, *shape[1:]))
        middle: tuple[Any, ...] = tuple(n // 2 for n in shape[2:])
        weight[(slice(None), same, same, *middle)] = 1
        return device.put(weight.reshape(shape), dtype)

    return make


def sparse(sparsity: float, std: float = 0.01) -> Initializer:
    """A normal matrix with that share of zeros in each column, at random places."""

    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        _expect("sparse", shape, 2, 2)
        zeros = ceil(sparsity * shape[0])
        order = rng.generator().random(shape).argsort(axis=0)
        values = rng.generator().normal(0, std, shape)
        return device.put(np.where(order < zeros, 0, values), dtype)

    return make


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """fan_in and fan_out of a weight."""
    _expect("fans", shape, 2, None)
    kernel = prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _kaiming(
    a: float, mode: str, nonlinearity: str, gain: float | None
) -> Callable[[int, int], float]:
    if mode not in ("fan_in", "fan_out"):
        raise InputError(f"kaiming: expected mode 'fan_in' or 'fan_out', got {mode!r}")
    factor = calculate_gain(nonlinearity, a) if gain is None else gain
    return lambda ins, outs: factor / sqrt(max(ins if mode == "fan_in" else outs, 1))


def _within(low: float, high: float, count: int) -> np.ndarray:
    """`count` standard normal numbers between low and high, by rejection."""
    nearest = min(max(low, 0.0), high)
    if nearest > 0:  # values so far behind the nearest are never drawn
        high = min(high, nearest + 40 / (nearest + 1))
    elif nearest < 0:
        low = max(low, nearest - 40 / (1 - nearest))
    plain = low < 0 < high and high - low > 2
    draw = rng.generator()
    found = np.empty(0)
    while len(found) < count:
        size = 2 * (count - len(found)) + 16
        if plain:
            new = draw.standard_normal(size)
            kept = new[(new >= low) & (new <= high)]
        else:
            new = draw.uniform(low, high, size)
            kept = new[draw.random(size) < np.exp((nearest**2 - new**2) / 2)]
        found = np.concatenate([found, kept])
    return found[:count]


def _expect(where: str, shape: tuple[int, ...], least: int, most: int | None) -> None:
    if len(shape) < least or (most is not None and len(shape) > most):
        span = f"{least}" if least == most else f"{least} to {most}"
        span = f"{least} or more" if most is None else span
        raise InputError(f"{where}: expected a shape with {span} axes, got {shape}")


_GAINS = dict.fromkeys(("linear", "sigmoid", "conv1d", "conv2d", "conv3d"), 1.0)
_GAINS |= {f"conv_transpose{n}d": 1.0 for n in (1, 2, 3)}
_GAINS |= {"tanh": 5 / 3, "relu": sqrt(2), "selu": 3 / 4}


def _scaled_uniform(deviation: Callable[[int, int], float]) -> Initializer:
    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        bound = sqrt(3) * deviation(*fans(shape))
        return rng.uniform(shape, -bound, bound, dtype, device)

    return make


def _scaled_normal(deviation: Callable[[int, int], float]) -> Initializer:
    def make(shape: tuple[int, ...], dtype: Any, device: Device) -> Array:
        return rng.normal(shape, 0.0, deviation(*fans(shape)), dtype, device)

    return make


if not TYPE_CHECKING:  # checkers know what there is

    def __getattr__(name):
        raise missing("burnish.nn.init", name, globals())
