"""The table harness for captures: a program gives what the module itself gives.

The module is captured with some values and run with others; its twin, a copy, is called
with the others directly. Outputs, gradients, buffers and random draws are compared to
the last bit.
"""

import numpy as np

from burnish import Tensor, nn, seed
from burnish._engine.pytree import leaves
from burnish.capture import capture


def check(module, arrays, others, call=None, train=True, place="cpu"):
    """Inference, then training, of a module of ours, at a place.

    arrays: what it is captured with; others: what it is run with; call: options.
    """
    call = call or {}
    compare_runs(module.fork(place), arrays, others, call)
    if train:
        compare_runs(module.fork(f"{place}:autodiff"), arrays, others, call)


def compare_runs(module, arrays, others, call):
    other_call = {k: changed(v) for k, v in call.items()}
    state = {name: a.copy() for name, a in module.state_dict().items()}
    twin = module.fork(module.device)
    seed(1)
    device = module.device
    first = [leaf(a, device) for a in arrays]
    program = capture(module, *first, **tensors_of(call, device))
    assert same(module.state_dict(), state), "the capture left something behind"
    drawn = np.random.default_rng(5)
    for _ in range(2):
        given = [[leaf(a, device) for a in others] for _ in range(2)]
        seed(0)
        got = tensors(program(*given[0], **tensors_of(other_call, device)))
        seed(0)
        want = tensors(twin(*given[1], **tensors_of(other_call, device)))
        for one, other in zip(got, want, strict=True):
            equal(one, other)
        assert same(module.state_dict(), twin.state_dict())
        compare_gradients(drawn, got, want, [module, twin], given)


def compare_gradients(drawn, got, want, modules, given):
    """Of inputs and of parameters, by the same random gradients of the results."""
    found = []
    grads = [drawn.normal(size=y.shape).astype(y.dtype) for y in want]
    for results in (got, want):
        learned = [
            (y * Tensor(g, device=y.device.inner())).sum()
            for y, g in zip(results, grads, strict=True)
            if y.requires_grad
        ]
        found.append(sum(learned[1:], learned[0]).backward() if learned else None)
    mine, twins = found
    assert (mine is None) == (twins is None)
    if mine is None:
        return
    pairs = [pair for pair in zip(*given, strict=True) if isinstance(pair[0], Tensor)]
    pairs += list(zip(*(m.parameters() for m in modules), strict=True))
    for one, other in pairs:
        a, b = one.grad(mine), other.grad(twins)
        assert (a is None) == (b is None)
        if a is not None and a.device.kind == "cpu":
            equal(a, b)
        elif a is not None:  # where sums of a GPU have no fixed order
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def equal(one, other):
    assert one.device is other.device
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one.numpy(), other.numpy(), strict=True)


def same(one, other):
    """Whether two states are equal to the last bit."""
    return all(bool((one[name] == other[name]).all()) for name in other)


def tensors_of(call, device):
    """The options of a call with tensors for arrays."""
    place = device.inner()
    return {k: Tensor(v, device=place) if is_array(v) else v for k, v in call.items()}


def leaf(value, device):
    if not is_array(value):
        return value
    given = Tensor(value, device=device.inner())
    return (
        given.require_grad()
        if device.is_autodiff and value.dtype.kind == "f"
        else given
    )


def is_array(value):
    return isinstance(value, np.ndarray)


def tensors(results):
    return [each for each in leaves(results) if isinstance(each, Tensor)]


def changed(value):
    """Other values of the same kind: floats drawn again, others in another order."""
    if not is_array(value):
        return value
    if value.dtype.kind == "f":
        rng = np.random.default_rng(7)
        return np.asarray(rng.normal(size=value.shape) * 1.5, value.dtype)
    if value.dtype.kind == "O":
        return np.flip(value).copy() if value.ndim else value
    is_ordered = value.ndim == 1 and (np.diff(value) >= 0).all()
    return value if is_ordered else np.roll(value, 1)


RNG = np.random.default_rng(0)


def floats(*shape):
    return Tensor(RNG.normal(size=shape).astype("float32"))


def network():
    seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
