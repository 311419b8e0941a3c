"""Operators' kernels of the C library: against float64 and central differences.

`tests/runtime/plan/test_sanitized.py` runs this file under the compiler's checks too.
"""

from __future__ import annotations

import numpy as np
import pytest

import burnish
from burnish import ops
from burnish.kernels import direct, library
from burnish.ops.norm import channel_norm

EPS = np.finfo(np.float32).eps


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """The kernels that a test used; small arrays are worth one, and threads too."""
    if library() is None:
        pytest.skip("no C compiler here")
    names = []
    launch = direct.launch

    def noted(kernel, parts, **fields):
        names.append(kernel)
        launch(kernel, parts, **fields)

    monkeypatch.setattr(direct, "launch", noted)
    monkeypatch.setattr(direct, "_ENOUGH", 1)
    monkeypatch.setattr(ops._cpu, "_FEW", 0)
    return names


def values(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def wide(arrays):
    return [a if a is None else a.astype(np.float64) for a in arrays]


def close(ours, wanted, roundings=16.0):
    """Equal within some roundings of the largest number; NaN and infinities alike."""
    assert ours.dtype == np.float32
    assert ours.shape == wanted.shape
    finite = np.isfinite(wanted)
    scale = np.abs(wanted[finite]).max(initial=1e-30)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(wanted))
    np.testing.assert_array_equal(ours[~finite], wanted[~finite])
    np.testing.assert_allclose(
        ours[finite], wanted[finite], rtol=0, atol=roundings * EPS * scale
    )


def same_for_any_threads(function):
    """What a function gives, which has the same bits for any number of threads."""
    given = []
    try:
        for count in (1, 2, 3, 7):
            burnish.set_num_threads(count)
            result = function()
            given.append(result if isinstance(result, list | tuple) else [result])
    finally:
        burnish.set_num_threads(None)
    for other in given[1:]:
        for a, b in zip(given[0], other, strict=True):
            assert (a is None and b is None) or a.tobytes() == b.tobytes()
    return given[0]


def pulled(op, g, y, args, options):
    """The gradient of every argument that there is."""
    return op.pull(g, y, args, options, [a is not None for a in args])


def slope(op, args, g, place, along, options, step=1e-5):
    """The derivative of <op(args), g> as args[place] goes `along`, by differences."""

    def at(sign):
        moved = wide(args)
        moved[place] = moved[place] + sign * step * along
        y = op.value(*moved, **options)
        return (y[0] if isinstance(y, tuple) else y).ravel() @ g.ravel().astype(float)

    return (at(1) - at(-1)) / (2 * step)


def checked_by_differences(op, args, g, grads, options, tolerance=1e-4):
    """Each gradient agrees with central differences in a random direction."""
    for place, grad in enumerate(grads):
        if grad is None:
            continue
        along = np.random.default_rng(7).standard_normal(args[place].shape)
        wanted = slope(op, args, g, place, along, options)
        scale = np.linalg.norm(grad) * np.linalg.norm(along) + 1e-3
        assert abs((grad.astype(float) * along).sum() - wanted) < tolerance * scale


# --- normalisation ---


@pytest.mark.parametrize(
    "shape",
    [(3, 5, 7, 9), (6, 17, 1, 1), (64, 3), (2, 1, 513), (1, 2, 40, 33), (4, 6, 8)],
)
@pytest.mark.parametrize("given", ["both", "scale", "neither"])
def test_batch_norm_in_training(shape, given, launched):
    c = shape[1]
    x, g = values(*shape) * 3 + 5, values(*shape, seed=1)
    scale = None if given == "neither" else values(c, seed=2)
    bias = values(c, seed=3) if given == "both" else None
    args, options = (x, scale, bias), {"eps": 1e-3}
    y = same_for_any_threads(lambda: channel_norm(*args, **options))
    wanted = channel_norm.value(*wide(args), **options)
    for ours, want in zip(y, wanted, strict=True):
        close(ours, want)
    grads = same_for_any_threads(
        lambda: pulled(channel_norm, (g, None, None), tuple(y), args, options)
    )
    exact = pulled(channel_norm, (*wide([g]), None, None), wanted, wide(args), options)
    assert set(launched) == {"batch_norm", "batch_norm_gradient"}
    for ours, want in zip(grads, exact, strict=True):
        assert (ours is None) == (want is None)
        if ours is not None:
            close(ours, want, 128)
    checked_by_differences(channel_norm, args, g, grads, options)


def test_batch_norm_of_equal_numbers_and_of_nan():
    x = np.full((3, 4, 5, 5), 1e4, np.float32)
    x[:, 1] = 0
    y, mean, var = channel_norm(x)
    assert not y.any()
    assert not var.any()
    np.testing.assert_array_equal(mean, [1e4, 0, 1e4, 1e4])
    x[0, 2, 3, 3] = np.nan
    y, _, _ = channel_norm(x)
    assert np.isnan(y[:, 2]).all()
    assert not np.isnan(y[:, [0, 1, 3]]).any()


def test_plain_rules_take_what_kernels_do_not(launched):
    x = values(4, 3, 5)
    g = values(3)
    y = channel_norm(x.astype(np.float64))
    pulled(channel_norm, (None, g, None), y, (x, None, None), {"eps": 1e-5})
    assert not launched


def test_nothing_is_launched_without_a_library(launched, monkeypatch):
    monkeypatch.setattr(direct, "built_before", lambda: None)
    x = values(4, 3, 5)
    wanted = channel_norm.value(x)
    for ours, want in zip(channel_norm(x), wanted, strict=True):
        np.testing.assert_array_equal(ours, want)
    assert not launched


def test_pools_of_threads_follow_one_another_at_once():
    x = values(4, 64, 3)
    try:
        for count in [2, 5, 3, 8] * 20:  # the last threads may not have begun yet
            burnish.set_num_threads(count)
            channel_norm(x)
    finally:
        burnish.set_num_threads(None)
