"""How kernels of the library are checked: helpers of their tests."""

from __future__ import annotations

import numpy as np

import burnish

EPS = np.finfo(np.float32).eps


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
    """The result of a function, bit-identical for any number of threads."""
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
