"""Shared by tests of plans."""

from __future__ import annotations

from typing import Any

import numpy as np

import burnish
from burnish import Tensor
from burnish._engine.pytree import leaves, mapped

TRIALS = 12
"""Drawn shapes of one kernel."""

TOLERANCE = 1e-5  # of the largest number, as `burnish.compile` promises


def check(function: Any, *args: Any, **options: Any) -> Any:
    """A compiled function gives the plain one's numbers, twice; the compiled one."""
    fast = burnish.compile(function, **options)
    wanted = function(*args)
    for _ in range(2):
        same(fast(*args), wanted)
    assert "planning failed" not in fast.explain(), fast.explain()
    return fast


def same(ours: Any, wanted: Any) -> None:
    """Two results are equal within the tolerance, NaN and infinities where they are.

    The tolerance is of the largest number of all outputs: one of them may be a
    difference of large numbers alone, such as a last state of one element.
    """
    scale = largest(wanted)
    for one, other in zip(leaves(ours), leaves(wanted), strict=True):
        if not hasattr(other, "data") and not isinstance(other, np.ndarray):
            assert one == other
            continue
        a, b = (np.asarray(getattr(each, "data", each)) for each in (one, other))
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if b.dtype.kind != "f":
            assert a.tobytes() == b.tobytes() if b.dtype.kind != "O" else (a == b).all()
            continue
        finite = np.isfinite(b)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_array_equal(a[np.isinf(b)], b[np.isinf(b)])
        np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=TOLERANCE * scale)


def largest(result: Any) -> float:
    """The largest magnitude of the finite floats in a result."""
    arrays = (np.asarray(getattr(each, "data", each)) for each in leaves(result))
    floats = (a[np.isfinite(a)] for a in arrays if a.dtype.kind == "f")
    return max((float(np.abs(a).max(initial=0)) for a in floats), default=0) or 1e-30


def records(fast: Any) -> int:
    """How many records the compiled function's plans have."""
    return sum(
        len(plan.steps) for plan in fast._plans.values() if hasattr(plan, "steps")
    )


def wide(x: Any) -> Any:
    return Tensor(x.data.astype(np.float64)) if x.dtype == np.float32 else x


class Draw:
    """Numbers for one trial."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def tensor(self, *shape: int) -> Tensor:
        return Tensor(self.random.standard_normal(shape).astype(np.float32))

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def choice(self, *options: Any) -> Any:
        return options[self.random.integers(len(options))]


def exact(function: Any, *args: Any, constants: Any = (), **options: Any) -> Any:
    """The compiled function agrees with the plain one, and that one with float64."""
    fast = check(lambda *given: function(*given, *constants), *args, **options)
    assert records(fast)
    wanted = function(*mapped(args, wide), *mapped(list(constants), wide))
    ours = fast(*args)
    same(ours, mapped(wanted, lambda y: Tensor(y.data.astype(ours.dtype))))
    return fast


def conv_case(d: Draw, rank: int, groups: bool = False) -> Any:
    """x, weight, bias and options of a convolution."""
    kernel = [d.number(1, 4 if rank < 3 else 3) for _ in range(rank)]
    options = {
        "stride": tuple(d.number(1, 3) for _ in range(rank)),
        "dilation": tuple(d.number(1, 2) for _ in range(rank)),
        "padding": tuple((d.number(0, 3), d.number(0, 3)) for _ in range(rank)),
    }
    sizes = [d.number(7, 20 if rank < 3 else 9) for _ in range(rank)]
    ins, outs = d.choice(1, 3, 5, 16, 20, 33), d.choice(1, 7, 16, 31, 48, 64)
    if groups:
        count = d.choice(2, 3, 4, 8)
        ins, outs = (
            count * d.choice(1, 3, 4, 16, 24, 34),
            count * d.choice(2, 4, 16, 34),
        )
        options["groups"] = count
    per_group = ins // options.get("groups", 1)
    x = d.tensor(d.number(1, 3), ins, *sizes)
    bias = d.tensor(outs) if d.number(0, 1) else None
    return x, d.tensor(outs, per_group, *kernel), bias, options
