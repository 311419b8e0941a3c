"""Calls and gradients of arrays alike are prepared once."""

import numpy as np

from burnish import Device, Tensor
from burnish.backend.cuda import calls
from burnish.operator import Operator


def there(*shape):
    normal = np.random.default_rng(0).normal(size=shape)
    return Device("cuda").put(normal.astype(np.float32))


CALLS = [
    (lambda x: (x, 2.0), {}, "the first"),
    (lambda x: (x + 1, 2.0), {}, None),
    (lambda x: (x, 3.0), {}, "another number"),
    (lambda x: (x, 2), {}, "an integer"),
    (lambda x: (x, 0.0), {}, "zero"),
    (lambda x: (x, -0.0), {}, "its negative"),
    (lambda x: (x, 2.0), {"axis": -1}, "an option"),
    (lambda x: (x.T, 2.0), {}, "other strides"),
    (lambda x: (x.reshape(-1)[1:].reshape(3, 21), 2.0), {}, "an odd address"),
    (lambda x: (x.astype(np.float64), 2.0), {}, "another dtype"),
    (lambda x: (x[:4], 2.0), {}, "another shape"),
    (lambda x: (x, 2.0), {}, None),
]


def test_calls_of_arrays_alike_are_prepared_once():
    prepared = []

    def prepare(x, factor, **options):
        prepared.append(x)
        return lambda x, factor: x

    x = there(8, 8)
    for given, options, why in CALLS:
        before = len(prepared)
        args = given(x)
        assert calls.called(prepare, args, options) is args[0]
        assert (len(prepared) > before) == (why is not None), why
    assert calls.called(prepare, (x.get(), 2.0), {}) is None
    assert calls.called(lambda *_: None, (x, 2.0), {}) is None


def test_gradients_of_arrays_alike_are_prepared_once():
    def _same(x):
        return x.view()

    prepared, same = [], Operator(_same)

    @same.prepared_vjp
    def _(g, y, x, *, needed):
        prepared.append(needed)
        return lambda g, y, x: [g]

    for n in (8, 8, 9):
        x = Tensor(there(n)).require_grad()
        g = there(n)
        assert same(x).backward(g).get(x).data is g
    assert prepared == [(True,), (True,)]
    same.vjp("x", on="cupy")(lambda g, y, x: y)  # a rule of the user's goes before
    y = same(x)
    assert y.backward(g).get(x).data is y.data
    assert len(prepared) == 2
