"""The engine: gradients of any order, memory, depth, threads, and its refusals."""

import gc
import threading
import weakref

import numpy as np
import pytest

from burnish import Device, Tensor, nn, ops
from burnish.autodiff import Gradients, Node, Variable
from burnish.errors import GradientError
from burnish.operator import operator, registry

RNG = np.random.default_rng(0)


def leaf(values):
    return Tensor(values).require_grad()


@operator
def halves(x):
    """x -> (its first half, a count, its second half)"""
    middle = len(x) // 2
    return x[:middle], np.asarray(middle), x[middle:]


@halves.vjp
def _(g, y, x):
    first, _, second = g
    zero = np.zeros((len(x) // 2, *x.shape[1:]))
    return join(zero if first is None else first, zero if second is None else second)


@operator
def join(*parts):
    """All parts one after the other."""
    return np.concatenate(parts)


@join.vjp
def _(g, y, *parts):
    first, _, second = halves(g)
    return [first, second]


for made in (halves, join):
    del registry[made.name]


@pytest.fixture(autouse=True)
def registry_as_before():
    """Operators that a test declares are gone after it."""
    yield
    declared = [op.name for op in registry.values() if op.__module__ == __name__]
    for name in declared:
        del registry[name]


def central(function, x, step=1e-6):
    """The derivative of a function to one number, by central differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * step
            ends.append(function(Tensor(moved)).item())
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


def total(x):
    return ops.sum_to(x, shape=())


FUNCTIONS = {
    "polynomial": lambda x: total(x * x * x - 2 * x),
    "exponential": lambda x: total(ops.exp(x * x) * x),
    "diamond": lambda x: total((lambda y: y * y + y * x)(x * 3)),
    "broadcast": lambda x: total(x * ops.sum_to(x, shape=(1, 3)) + x),
    "matmul": lambda x: total((x.mT @ x) * (x.mT @ ops.exp(x))),
    "two outputs": lambda x: total(
        halves(x)[0] * 2 + ops.exp(halves(x)[2]) * halves(x)[0]
    ),
    "one of two outputs": lambda x: total(halves(x)[2] * halves(x)[2] * halves(x)[2]),
}
every = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@every
def test_first_order_equals_central_differences(function):
    values = RNG.normal(size=(4, 3))
    x = leaf(values)
    found = x.grad(function(x).backward())
    assert found.shape == x.shape
    np.testing.assert_allclose(found.numpy(), central(function, values), 1e-5, 1e-7)


@every
def test_second_order_equals_central_differences(function):
    values, weight = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))

    def slope(x):
        x = leaf(x)
        return total(x.grad(function(x).backward(create_graph=True)) * weight)

    x = leaf(values)
    first = x.grad(function(x).backward(create_graph=True))
    second = x.grad(total(first * weight).backward())
    np.testing.assert_allclose(second.numpy(), central(slope, values), 1e-4, 1e-6)


def test_third_order():
    x = leaf(2.0)
    g = x * x * x * x
    for expected in (32, 48, 48, 24):
        g = x.grad(g.backward(create_graph=True))
        assert g.item() == expected


def test_outputs_that_nothing_uses_need_no_gradient():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    first, count, second = halves(x)
    assert not count.requires_grad
    assert first.requires_grad
    del second
    assert x.grad(total(first * first).backward()).tolist() == [2, 4, 0, 0]


def test_one_backward_finds_every_leaf():
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    gradients = (a * b + b).backward()
    assert len(gradients) == 2
    assert (a.grad(gradients).item(), b.grad(gradients).item()) == (3, 3)
    assert c.grad(gradients) is None
    assert Tensor(1.0).grad(gradients) is None


def test_gradients_can_be_replaced_and_removed():
    a, b = leaf(2.0), leaf(3.0)
    gradients = (a * b).backward()
    gradients.set(a, Tensor(7.0))
    assert gradients.get(a).item() == 7
    assert gradients.remove(a).item() == 7
    assert gradients.remove(a) is None
    assert gradients.remove(Tensor(1.0)) is None
    assert len(gradients) == 1
    with pytest.raises(GradientError, match="the tensor was not recorded"):
        gradients.set(Tensor(1.0), Tensor(1.0))


def test_a_gradient_may_be_given():
    x = leaf([1.0, 2.0])
    y = x * 3
    assert x.grad(y.backward(np.array([1.0, 10.0]))).tolist() == [3, 30]
    assert x.grad(y.backward(Tensor([1.0, 10.0]))).tolist() == [3, 30]
    weight = leaf([1.0, 10.0])
    g = x.grad((x * x).backward(weight, create_graph=True))
    assert weight.grad(total(g).backward()).tolist() == [2, 4]


def test_a_graph_can_be_walked_twice():
    x = leaf(3.0)
    y = x * x
    assert x.grad(y.backward()).item() == x.grad(y.backward()).item() == 6


def test_a_leaf_that_is_itself_the_output():
    x = leaf(3.0)
    assert x.grad(x.backward()).item() == 1


def test_detached_values_are_constants():
    x = leaf(3.0)
    assert x.grad((x * x.detach()).backward()).item() == 3
    assert not (x.detach() * 2).requires_grad
    assert not x.inner().device.is_autodiff


def test_backward_says_what_it_needs():
    with pytest.raises(GradientError, match=r"on 'cpu'; move .*\.to\('cpu:autodiff'\)"):
        Tensor(1.0).backward()
    with pytest.raises(GradientError, match="no parameter that requires a gradient"):
        Tensor(1.0, device="cpu:autodiff").backward()
    with pytest.raises(GradientError, match=r"one element .* of shape \(2,\)"):
        leaf([1.0, 2.0]).backward()


def test_a_missing_rule_is_named_only_when_it_is_needed():
    @operator
    def shifted(x, by):
        """x + by"""
        return x + by

    @shifted.vjp("x")
    def _(g, y, x, by):
        return g

    x = leaf(1.0)
    assert x.grad(shifted(x, Tensor(2.0)).backward()).item() == 1
    with pytest.raises(GradientError, match=r"shifted: no gradient .* 'by' exists"):
        shifted(Tensor(2.0), x).backward()


def test_whole_numbers_are_not_recorded():
    @operator
    def rounded(x):
        """x as int64"""
        return np.rint(x).astype(np.int64)

    assert not rounded(leaf([1.5, 2.5])).requires_grad


def test_an_operator_may_stop_the_gradient():
    @operator
    def fixed(x):
        """x, a constant to its consumers"""
        return x + 0

    @fixed.vjp
    def _(g, y, x):
        return None

    x = leaf(2.0)
    assert x.grad((fixed(x) * x).backward()).item() == 2
    assert x.grad(fixed(x).backward()) is None


def test_new_values_between_forward_and_backward_do_not_matter():
    model = nn.Linear(2, 1).to("cpu:autodiff")
    model.load_state_dict({"weight": [[2.0, 3.0]], "bias": [0.0]})
    x = leaf(np.array([1.0, 1.0], np.float32))
    y = model(x) * model.weight
    expected = x.grad(y.backward(np.ones((1, 2))))
    model.weight.assign(np.full((1, 2), 100, np.float32))
    gradients = y.backward(np.ones((1, 2)))
    assert x.grad(gradients).tolist() == expected.tolist()
    assert model.weight.grad(gradients).shape == (1, 2)


def test_a_shared_parameter_gets_the_sum():
    model = nn.Module()
    model.one, model.two = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    model.two.weight = model.one.weight
    model.to("cpu:autodiff").load_state_dict({"one.weight": np.eye(2)})
    x = Tensor(np.array([[1.0, 2.0]], np.float32))
    y = model.two(model.one(x))
    found = model.one.weight.grad(y.backward(np.ones((1, 2))))
    assert found.tolist() == [[2, 4], [2, 4]]
    assert model.two.weight.grad(y.backward(np.ones((1, 2)))).tolist() == found.tolist()


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("create_graph", [False, True])
def test_memory_is_freed_without_the_collector(create_graph):
    x = leaf(np.ones(10))
    middle = ops.exp(x * 2)
    y = total(middle * middle)
    seen = [weakref.ref(thing) for thing in (middle, middle.node, y.node, middle.data)]
    gradients = y.backward(create_graph=create_graph)
    found = weakref.ref(gradients.get(x))
    del middle, y
    if not create_graph:
        assert [ref() for ref in seen] == [None] * 4
    del gradients
    assert [ref() for ref in seen] == [None] * 4
    assert found() is None


@pytest.mark.usefixtures("without_collector")
def test_a_leaf_does_not_hold_what_was_computed_from_it():
    x = leaf(np.ones(3))
    seen = weakref.ref((x * 2).node)
    assert seen() is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_depth_has_no_limit(create_graph):
    x = leaf(1.0)
    y = x
    for _ in range(10_000):
        y = y + x
    gradients = y.backward(create_graph=create_graph)
    assert x.grad(gradients).item() == 10_001
    del y, gradients


def test_work_grows_with_nodes_not_with_paths():
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    assert x.grad(y.backward()).item() == 2.0**60


def test_threads_record_apart():
    shared, found, gate = leaf(3.0), {}, threading.Barrier(8)

    def work(k):
        gate.wait()
        y = shared
        for _ in range(200):
            y = y + shared * k
        found[k] = shared.grad(y.backward()).item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: 1 + 200 * k for k in range(8)}


def test_gradients_keep_dtype_and_device():
    x = Tensor(np.ones(3, np.float32), device="cpu:autodiff").require_grad()
    found = x.grad(total(x * 2.0).backward())
    assert found.dtype == np.float32
    assert found.device is Device("cpu:autodiff")
    assert not found.requires_grad


def test_a_gradient_is_replaced_by_one_of_its_shape_alone():
    x = Tensor(np.ones((2, 3), np.float32)).require_grad()
    gradients = total(x * 2.0).backward()
    gradients.set(x, np.zeros((2, 3)))
    assert x in gradients
    assert x.grad(gradients).dtype == np.float32
    assert x.grad(gradients).tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(GradientError, match=r"expected shape \(2, 3\), got \(3,\)"):
        gradients.set(x, np.zeros(3))


def test_the_engine_needs_no_tensor():
    x = Variable.wrap(np.array(3.0), Device("cpu:autodiff"), Node())
    from burnish.autodiff import backward

    gradients = backward(ops.mul(x, x))
    assert isinstance(gradients, Gradients)
    assert type(gradients.get(x)) is Variable
    assert gradients.get(x).data == 6
