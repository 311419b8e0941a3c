"""Shared by tests of plans."""

from __future__ import annotations

from typing import Any

import numpy as np

import burnish
from burnish._engine.pytree import leaves

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
