"""Gradients of functions of arrays: of a plan beside those in double precision."""

import numpy as np

import burnish
from burnish import nn, optim


class Held(nn.Module):
    """Arrays as parameters, so that a step may ask for their gradients."""

    def __init__(self, arrays, dtype):
        for name, array in arrays.items():
            setattr(self, name, nn.Param(array.astype(dtype)))


def gradients(function, arrays, dtype, planned, factor):
    """The gradients of the sum of a function of the arrays times a factor."""
    held = Held(arrays, dtype).to("cpu:autodiff")
    names = list(arrays)

    def step(factor):
        made = function(*(getattr(held, name) for name in names))
        found = (made * factor).sum().backward()
        optim.SGD().step(0.0, held, found)  # so that none is a constant of the plan
        return [getattr(held, name).grad(found) for name in names]

    fast = burnish.compile(step) if planned else step
    found = [each.numpy() for each in fast(burnish.Tensor(factor.astype(dtype)))]
    if planned:
        assert "one plan" in fast.explain(), fast.explain()
    return found, fast.explain() if planned else ""


def exact(function, *given, least=1e-6):
    """Gradients of a plan beside those in double precision; says what had no kernel.

    least: the scale of gradients that are differences of numbers like it.
    """
    arrays = {f"a{i}": array for i, array in enumerate(given)}
    held = Held(arrays, np.float32)
    shape = function(*(getattr(held, name) for name in arrays)).shape
    factor = np.random.default_rng(3).normal(size=shape)
    fast, report = gradients(function, arrays, np.float32, True, factor)
    wide, _ = gradients(function, arrays, np.float64, False, factor)
    for one, other in zip(fast, wide, strict=True):
        scale = np.abs(other).max() + least
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=2e-5 * scale, rtol=2e-5)
    return report


def normal(random, *shape):
    return random.standard_normal(shape)
