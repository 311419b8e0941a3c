"""Param and Buffer: lazy values, devices, freezing, copies."""

import copy
import pickle
import threading

import numpy as np
import pytest

from burnish import Device, Tensor, nn, seed
from burnish.errors import InputError
from burnish.nn import init


def counted():
    calls = []

    def initial(shape, dtype, device):
        calls.append((shape, dtype, device))
        return np.full(shape, len(calls), np.float64)

    return calls, nn.Param(initial, (2, 3), "float32")


def test_a_lazy_param_is_made_once_and_only_when_used():
    calls, param = counted()
    assert (param.shape, param.dtype, param.size, param.ndim) == ((2, 3), "f4", 6, 2)
    assert param.is_lazy
    assert repr(param) == "Param((2, 3), float32, device='cpu', lazy)"
    param.to("cpu")
    param.place(Device("cpu:autodiff"))
    assert calls == [] or not param.is_lazy
    assert param.data.dtype == np.float32
    assert param.data is param.data
    assert len(calls) == 1
    assert not param.is_lazy


def test_a_lazy_param_that_is_assigned_is_never_made():
    calls, param = counted()
    param.assign(np.ones((2, 3)), np.float16)
    assert param.dtype == np.float16
    assert (param.numpy() == 1).all()
    assert calls == []


def test_threads_make_a_lazy_param_once():
    gate, calls = threading.Barrier(8), []

    def initial(shape, dtype, device):
        calls.append(1)
        return np.random.default_rng().random(shape)

    param = nn.Param(initial, (50, 50))
    seen = []

    def use():
        gate.wait()
        seen.append(param.data)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert all(array is seen[0] for array in seen)


@pytest.mark.parametrize("early", [False, True])
def test_initial_weights_leave_other_draws_alone(early):
    layer = nn.Linear(3, 2)
    seed(3)
    expected = Tensor.rand(4).tolist()
    seed(3)
    if early:
        layer.weight.numpy()
    drawn = Tensor.rand(4).tolist()
    weight = layer.weight.tolist()
    assert drawn == expected
    seed(3)
    assert nn.Linear(3, 2).weight.tolist() == weight


@pytest.mark.parametrize(
    "value", [np.arange(3.0), [0.0, 1.0, 2.0], Tensor(np.arange(3.0))]
)
def test_values_may_be_given(value):
    param = nn.Param(value)
    assert param.dtype == (np.float64 if hasattr(value, "ndim") else np.float32)
    assert param.tolist() == [0, 1, 2]
    assert not param.is_lazy


def test_an_initializer_needs_a_shape():
    with pytest.raises(InputError, match="Param: an initializer needs a shape"):
        nn.Param(init.zeros)


def test_an_initializer_gives_the_shape_it_was_asked_for():
    param = nn.Param(lambda shape, dtype, device: np.zeros(9), (2,))
    with pytest.raises(InputError, match=r"gives the shape \(2,\), got \(9,\)"):
        param.numpy()
    assert param.shape == (2,)


def test_assign_keeps_the_shape_and_lets_the_old_array_alone():
    param = nn.Param(np.zeros(3, np.float32))
    old = param.data
    param.assign(Tensor([1.0, 2.0, 3.0]))
    assert old.tolist() == [0, 0, 0]
    assert param.tolist() == [1, 2, 3]
    with pytest.raises(InputError, match=r"assign: expected .* \(3,\), got \(1, 3\)"):
        param.assign(np.zeros((1, 3)))
    assert param.tolist() == [1, 2, 3]


def test_only_a_trainable_param_on_an_autodiff_device_is_recorded():
    param, buffer = nn.Param(np.zeros(3)), nn.Buffer(np.zeros(3))
    assert not param.requires_grad
    for item in (param, buffer):
        item.place(Device("cpu:autodiff"))
    assert param.requires_grad
    assert not buffer.requires_grad
    param.freeze()
    assert not param.requires_grad
    assert "frozen" in repr(param)
    param.freeze(False)
    assert param.requires_grad
    buffer.freeze(False)
    assert not buffer.requires_grad


def test_operators_return_plain_tensors():
    param = nn.Param(np.ones(3))
    assert type(param + 1) is Tensor


@pytest.mark.parametrize(
    "again",
    [nn.Param.copy, copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))],
)
def test_copies_have_their_own_identity(again):
    param = nn.Param(init.normal(1.0), (4,))
    param.place(Device("cpu:autodiff"))
    param.freeze()
    twin = again(param)
    assert type(twin) is nn.Param
    assert twin.tolist() == param.tolist()
    assert twin.device is param.device
    assert not twin.trainable
    twin.freeze(False)
    twin.assign(np.zeros(4))
    assert twin.requires_grad
    assert not param.requires_grad
    assert param.tolist() != [0, 0, 0, 0]
