"""The table harness for operators: one row says what to compute, the harness checks.

    CASES = [
        case(ops.relu, (3, 4), expect=lambda x: np.maximum(x, 0)),
        case(ops.add, (3, 1, 4), (2, 4), expect=np.add),
    ]

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_operator(case):
        case.check()

An input is a shape (random values away from kinks), an array (floats are cast to the
dtype at hand, others are left alone), or a Python value that is passed as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnish import Device, Tensor, ops
from burnish.errors import DeviceError
from burnish.operator import Operator


def listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of arrays, as one of arrays that are given one by one."""

    @functools.wraps(function)
    def one_by_one(*arrays: Any, **options: Any) -> Any:
        return function(list(arrays), **options)

    return one_by_one


FLOATS = (np.float32, np.float64)
STEP = 1e-5


class Case:
    """One operator with inputs and options, and what is expected of it.

    expect: a NumPy function of the inputs; None checks gradients only.
    dtypes: what shapes and floating arrays are made of, one check each.
    low, high: the range of random values.
    grad: whether float64 gradients are checked; or the places of the inputs to check.
    second: whether gradients of gradients are checked too.
    rtol, atol: tolerance of values; by default a few roundings of the dtype.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        inputs: Sequence[Any],
        options: dict[str, Any],
        *,
        expect: Callable[..., Any] | None,
        dtypes: Sequence[Any] = FLOATS,
        low: float = -2.0,
        high: float = 2.0,
        grad: bool | Sequence[int] = True,
        second: bool = True,
        rtol: float | None = None,
        atol: float = 0.0,
        gpu: bool = True,
    ):
        self.op, self.inputs, self.options = op, inputs, options
        self.expect, self.dtypes = expect, dtypes
        self.low, self.high = low, high
        self.grad, self.second = grad, second
        self.rtol, self.atol = rtol, atol
        self.gpu = gpu

    def __str__(self) -> str:
        shapes = ",".join(
            "x".join(map(str, getattr(i, "shape", i)))
            if isinstance(i, tuple | np.ndarray)
            else repr(i)
            for i in self.inputs
        )
        options = "".join(
            f" {name}={value}".replace("\n", "") for name, value in self.options.items()
        )
        return f"{self.op.__name__}({shapes}{options})"

    __repr__ = __str__

    def check(self) -> None:
        """Everything below; the GPU only where there is one."""
        for dtype in self.dtypes:
            self.check_value(np.dtype(dtype))
        if self.has_gradients():
            self.check_gradients()
            if self.second:
                self.check_second_order()
        if self.gpu and gpu_missing() is None:
            self.check_gpu()

    # --- values ---

    def check_value(self, dtype: np.dtype) -> None:
        """Values and dtype against `expect`; plain arrays, tensors, each kernel."""
        arrays = self.arrays(dtype)
        before = [np.array(a) for a in arrays if isinstance(a, np.ndarray)]
        got = several(self.op(*arrays, **self.options))
        for value in got:
            assert value is None or isinstance(value, np.ndarray | np.generic), value
        if self.expect is not None:
            self.compare(got, several(self.expect(*arrays)))
        if isinstance(self.op, Operator) and "numpy" in self.op.kernels:
            self.compare(got, several(self.op.value(*arrays, **self.options)))
        tensors = [Tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]
        if any(isinstance(t, Tensor) for t in tensors):
            results = several(self.op(*tensors, **self.options))
            for result in results:
                assert isinstance(result, Tensor), type(result)
                assert result.node is None, "a plain device recorded a node"
                assert isinstance(result.data, np.ndarray), type(result.data)
            self.compare([r.data for r in results], got)
        after = [a for a in arrays if isinstance(a, np.ndarray)]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old, new, "an input was changed in place")

    def compare(self, got: Sequence[Any], want: Sequence[Any]) -> None:
        assert len(got) == len(want), f"{len(got)} results, expected {len(want)}"
        for one, other in zip(got, want, strict=True):
            other = np.asarray(other)
            assert one.dtype == other.dtype, f"{one.dtype}, expected {other.dtype}"
            assert one.shape == other.shape, f"{one.shape}, expected {other.shape}"
            if one.dtype.kind not in "fc":
                np.testing.assert_array_equal(one, other)
                continue
            rtol = self.rtol or 20 * float(np.finfo(one.dtype).eps)
            atol = self.atol or rtol * float(np.max(np.abs(self._finite(other))))
            np.testing.assert_allclose(one, other, rtol, atol)

    @staticmethod
    def _finite(array: np.ndarray) -> np.ndarray:
        return np.append(np.where(np.isfinite(array), array, 0).ravel(), 0)

    # --- gradients ---

    def has_gradients(self) -> bool:
        """Whether there is a float64 input whose gradient is asked for."""
        asked = self.grad is not False and np.float64 in map(np.dtype, self.dtypes)
        return asked and bool(self.differentiable()[1])

    def check_gradients(self) -> None:
        """Every gradient against central differences of the value."""
        arrays, places = self.differentiable()
        weights = self.weights(arrays)
        tensors = self.leaves(arrays, places)
        gradients = self.loss(tensors, weights).backward()
        for place in places:
            got = tensors[place].grad(gradients)
            want = differences(lambda *moved: self.loss(moved, weights), arrays, place)
            check_gradient(got, want, f"input {place}")

    def check_second_order(self) -> None:
        """Gradients of a linear functional of the gradients, in inputs and weights."""
        arrays, places = self.differentiable()
        weights = self.weights(arrays)
        rng = np.random.default_rng(7)
        probes = {i: rng.normal(size=arrays[i].shape) for i in places}

        def functional(
            inputs: Sequence[Any], weights: Sequence[Any], graph: bool
        ) -> Any:
            found = self.loss(inputs, weights).backward(create_graph=graph)
            total = Tensor(np.zeros(()))
            for place, probe in probes.items():
                part = inputs[place].grad(found)
                if part is not None:
                    total = total + ops.sum_to(part * probe, shape=())
            return total

        def first(*everything: Any) -> Any:
            inputs = self.leaves(everything[: len(arrays)], places)
            return functional(inputs, everything[len(arrays) :], False)

        tensors = self.leaves(arrays, places)
        leaves = [Tensor(w).require_grad() for w in weights]
        total = functional(tensors, leaves, True)
        if total.node is None:
            return
        gradients = total.backward()
        everything = [*arrays, *weights]
        for place in [*places, *range(len(arrays), len(everything))]:
            got = [*tensors, *leaves][place].grad(gradients)
            want = differences(first, everything, place)
            check_gradient(got, want, f"second order, input {place}")

    def differentiable(self) -> tuple[list[Any], list[int]]:
        """Float64 inputs, and the places whose gradients are asked for."""
        arrays = self.arrays(np.dtype(np.float64))
        places = [
            i
            for i, array in enumerate(arrays)
            if isinstance(array, np.ndarray) and array.dtype == np.float64
        ]
        if not isinstance(self.grad, bool):
            places = [i for i in places if i in self.grad]
        return arrays, places

    def weights(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """A random weight for every element of every floating result."""
        rng = np.random.default_rng(5)
        results = several(self.op(*arrays, **self.options))
        return [rng.normal(size=r.shape) for r in results if r.dtype.kind == "f"]

    def loss(self, inputs: Sequence[Any], weights: Sequence[Any]) -> Any:
        """The weighted sum of the floating results."""
        results = several(self.op(*inputs, **self.options))
        floating = [r for r in results if r.dtype.kind == "f"]
        parts = [
            ops.sum_to(ops.mul(r, w), shape=())
            for r, w in zip(floating, weights, strict=True)
        ]
        return functools.reduce(ops.add, parts)

    @staticmethod
    def leaves(arrays: Sequence[Any], places: Sequence[int]) -> list[Any]:
        return [
            Tensor(a).require_grad() if i in places else a for i, a in enumerate(arrays)
        ]

    # --- GPU ---

    def check_gpu(self) -> None:
        """CuPy's values and gradients against NumPy's, in the first dtype."""
        dtype = np.dtype(self.dtypes[0])
        arrays = self.arrays(dtype)
        host = several(self.op(*arrays, **self.options))
        device = Device("cuda")
        moved = [device.put(a) if isinstance(a, np.ndarray) else a for a in arrays]
        values = several(self.op(*moved, **self.options))
        rtol = self.rtol or (1e-5 if dtype.itemsize <= 4 else 1e-10)
        for one, other in zip(values, host, strict=True):
            assert one.dtype == other.dtype, f"{one.dtype}, expected {other.dtype}"
            np.testing.assert_allclose(one.get(), other, rtol, max(rtol, self.atol))
        if not self.has_gradients():
            return
        arrays, places = self.differentiable()
        weights = self.weights(arrays)
        found = []
        for place in (Device("cpu"), device):
            there = [place.put(a) if isinstance(a, np.ndarray) else a for a in arrays]
            tensors = self.leaves(there, places)
            loss = self.loss(tensors, [place.put(w) for w in weights])
            gradients = loss.backward()
            found.append([tensors[i].grad(gradients) for i in places])
        for one, other in zip(*found, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-8, 1e-10)

    # --- inputs ---

    def arrays(self, dtype: np.dtype) -> list[Any]:
        """The inputs in `dtype`; the same on every call."""
        rng = np.random.default_rng(3)
        return [self._input(item, dtype, rng, i) for i, item in enumerate(self.inputs)]

    def _input(
        self, item: Any, dtype: np.dtype, rng: np.random.Generator, i: int
    ) -> Any:
        if isinstance(item, tuple):
            return spread(item, dtype, self.low, self.high, rng, i)
        if isinstance(item, np.ndarray) and item.dtype.kind == "f":
            return item.astype(dtype) if dtype.kind == "f" else item
        return item


def case(
    op: Callable[..., Any], *inputs: Any, expect: Any = None, **options: Any
) -> Case:
    """One row: keywords that are `Case`'s settings go there, others to the operator."""
    settings = ("dtypes", "low", "high", "grad", "second", "rtol", "atol", "gpu")
    chosen = {name: options.pop(name) for name in settings if name in options}
    return Case(op, inputs, options, expect=expect, **chosen)


def spread(
    shape: tuple[int, ...],
    dtype: np.dtype,
    low: float,
    high: float,
    rng: np.random.Generator,
    i: int = 0,
) -> np.ndarray:
    """Distinct values between low and high in random order, none on a round number."""
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        floor = 0 if dtype.kind == "u" else int(low) - 3
        return rng.integers(floor, int(high) + 4, shape).astype(dtype)
    offset = (0.37, 0.31, 0.43, 0.29, 0.41)[i % 5]
    values = low + (np.arange(size) + offset) / max(size, 1) * (high - low)
    return rng.permutation(values).reshape(shape).astype(dtype)


def several(results: Any) -> Sequence[Any]:
    """Results as a sequence, also when there is one."""
    return results if isinstance(results, tuple | list) else (results,)


def differences(f: Callable[..., Any], inputs: Sequence[Any], place: int) -> np.ndarray:
    """The gradient of the scalar `f` in `inputs[place]` by central differences."""
    gradient = np.zeros(inputs[place].shape)
    for at in np.ndindex(gradient.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = list(inputs)
            moved[place] = np.array(inputs[place])
            moved[place][at] += step
            value = f(*moved)
            ends.append(value.item() if isinstance(value, Tensor) else float(value))
        gradient[at] = (ends[0] - ends[1]) / (2 * STEP)
    return gradient


def check_gradient(got: Any, want: np.ndarray, what: str) -> None:
    """A found gradient against a measured one, to 1e-6; None is zero."""
    if got is None:
        got = Tensor(np.zeros(want.shape))
    assert got.shape == want.shape, f"{what}: {got.shape}, expected {want.shape}"
    assert got.dtype == np.float64, f"{what}: {got.dtype}, expected float64"
    np.testing.assert_allclose(got.numpy(), want, 1e-6, 1e-6, err_msg=what)


@functools.cache
def gpu_missing() -> str | None:
    """Why values cannot be compared on a GPU, or None when they can."""
    try:
        Device("cuda").put(np.zeros(1))
    except DeviceError as error:
        return str(error)
    return None
