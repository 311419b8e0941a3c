"""The registry: calling, options, kernels, declaring operators of one's own."""

import pickle

import numpy as np
import pytest

from burnish import Device, Tensor, ops
from burnish.errors import DeviceError
from burnish.operator import operator, registry


@operator
def scaled(x, weight=None, *, factor: float = 2.0):
    """x * factor + weight"""
    y = x * factor
    return y if weight is None else y + weight


@scaled.vjp("x")
def _(g, y, x, weight=None, *, factor):
    return g * factor


@scaled.vjp("weight")
def _(g, y, x, weight, *, factor):
    return g


@operator
def product(x, y):
    """x * y"""
    return x * y


@product.vjp("x", "y")
def _(g, z, x, y):
    return g * y, g * x


@operator
def most(*arrays):
    """The largest element at each place."""
    return np.maximum.reduce(arrays)


@most.vjp
def _(g, y, *arrays):
    return [g * (a == y) for a in arrays]


for made in (scaled, product, most):
    del registry[made.name]


@pytest.fixture(autouse=True)
def registry_as_before():
    """Operators that a test declares are gone after it."""
    yield
    declared = [op.name for op in registry.values() if op.__module__ == __name__]
    for name in declared:
        del registry[name]


def leaf(values):
    return Tensor(values).require_grad()


def test_arrays_give_arrays_and_tensors_give_tensors():
    x = np.ones(3)
    assert type(scaled(x)) is np.ndarray
    assert type(scaled(Tensor(x))) is Tensor
    assert type(scaled(x, Tensor(x))) is Tensor


def test_scalars_inside_tensors_stay_arrays():
    assert type(scaled(Tensor(1.0)).data) is np.ndarray


def test_options_have_their_defaults_and_reach_the_rule():
    x = leaf(3.0)
    assert scaled(x).item() == 6
    y = scaled(x, factor=5.0)
    assert y.item() == 15
    assert x.grad(y.backward()).item() == 5


def test_arrays_may_be_named():
    x, w = leaf(3.0), leaf(1.0)
    y = scaled(x=x, weight=w, factor=4.0)
    gradients = y.backward()
    assert (x.grad(gradients).item(), w.grad(gradients).item()) == (4, 1)
    assert scaled(np.ones(1), weight=np.ones(1)).tolist() == [3]
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        scaled(x, wrong=1)


def test_one_rule_may_serve_two_arguments():
    x, y = leaf(3.0), leaf(4.0)
    gradients = product(x, y).backward()
    assert (x.grad(gradients).item(), y.grad(gradients).item()) == (4, 3)
    assert x.grad(product(x, 5.0).backward()).item() == 5
    assert y.grad(product(5.0, y).backward()).item() == 5


def test_any_number_of_arrays():
    a, b = leaf([1.0, 5.0]), leaf([2.0, 4.0])
    gradients = most(a, np.zeros(2), b).backward(np.ones(2))
    assert a.grad(gradients).tolist() == [0, 1]
    assert b.grad(gradients).tolist() == [1, 0]


def test_rules_are_asked_only_for_what_needs_a_gradient():
    asked = []

    @operator
    def watched(a, b):
        """a + b"""
        return a + b

    @watched.vjp("a")
    def _(g, y, a, b):
        asked.append("a")
        return g

    @watched.vjp("b")
    def _(g, y, a, b):
        asked.append("b")
        return g

    watched(leaf(1.0), Tensor(1.0)).backward()
    assert asked == ["a"]


def test_an_operator_presents_itself():
    assert repr(scaled) == "<operator scaled>"
    assert scaled.__doc__ == "x * factor + weight"
    assert list(scaled.__signature__.parameters) == ["x", "weight", "factor"]
    assert scaled.defaults == {"factor": 2.0}


def test_a_rule_for_an_argument_that_is_not_there():
    with pytest.raises(TypeError, match="scaled has no argument 'wieght'"):
        scaled.vjp("wieght")(lambda g, y, x: g)


def test_a_kernel_replaces_the_value_on_its_backend():
    @operator
    def doubled(x):
        """2 * x"""
        return 2 * x

    @doubled.on("numpy")
    def _(x):
        return x + x + 0.5

    @doubled.vjp
    def _(g, y, x):
        return g * 2

    x = leaf(1.0)
    assert registry["doubled"] is doubled
    assert doubled(np.ones(1)).tolist() == [2.5]
    assert x.grad(doubled(x).backward()).item() == 2
    assert doubled.value(1.0) == 2


def test_a_rule_for_one_backend_may_leave_it_to_the_plain_rule():
    @operator
    def tripled(x):
        """3x"""
        return x * 3

    @tripled.vjp
    def _(g, y, x):
        return g * 3

    @tripled.vjp("x", on="numpy")
    def _(g, y, x):
        assert type(g) is type(x) is np.ndarray
        return g * 4 if x.shape == (1,) else NotImplemented

    for value, gradient in (([1.0], [4.0]), ([1.0, 2.0], [3.0, 3.0])):
        x = leaf(value)
        assert x.grad(tripled(x).sum().backward()).tolist() == gradient


def test_recording_wins_over_the_plain_device():
    plain, recorded = Tensor(1.0), leaf(2.0)
    for y in (product(plain, recorded), product(recorded, plain)):
        assert y.device is Device("cpu:autodiff")
        assert y.requires_grad
    assert product(plain, plain).device is Device("cpu")
    on = Tensor(1.0, device="cpu:autodiff")
    assert product(on, plain).device is Device("cpu:autodiff")
    assert not product(on, plain).requires_grad


def test_tensors_on_two_devices_are_refused():
    far = Tensor.wrap(np.ones(2), Device("cuda:1"))
    with pytest.raises(DeviceError, match=r"product: .* got 'cpu' and 'cuda:1'; move"):
        product(Tensor([1.0, 2.0]), far)


def test_operators_pickle_as_functions_do():
    for name in ops.__all__:
        made = getattr(ops, name)
        assert pickle.loads(pickle.dumps(made)) is made, name
