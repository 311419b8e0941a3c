"""Devices: spelling, identity, decoration, moving tensors and modules."""

import copy
import importlib
import pickle
import sys
import types

import numpy as np
import pytest

from burnish import Device, Tensor, nn
from burnish.backend import as_indices, library, namespace, on_host
from burnish.errors import DeviceError


@pytest.mark.parametrize(
    ("given", "spelling"),
    [
        ("cpu", "cpu"),
        ("cpu:0", "cpu"),
        ("cuda", "cuda:0"),
        ("cuda:3", "cuda:3"),
        ("cpu:autodiff", "cpu:autodiff"),
        ("cuda:autodiff", "cuda:0:autodiff"),
        ("cuda:2:autodiff", "cuda:2:autodiff"),
    ],
)
def test_spellings(given, spelling):
    device = Device(given)
    assert str(device) == spelling
    assert repr(device) == f"Device('{spelling}')"
    assert Device(spelling) is device
    assert Device(device) is device


@pytest.mark.parametrize(
    "given",
    ["", "gpu", "cpu:1", "cuda:", "cuda:x", "CPU", "cpu:autodiff:autodiff", "cpu "],
)
def test_other_spellings_are_refused(given):
    with pytest.raises(DeviceError, match="expected 'cpu', 'cuda' or 'cuda:N'"):
        Device(given)


def test_decoration_is_the_same_place():
    device = Device("cuda:1")
    assert device.autodiff() is Device("cuda:1:autodiff")
    assert device.autodiff().inner() is device
    assert device.autodiff().autodiff() is device.autodiff()
    assert not device.is_autodiff


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))]
)
def test_copies_are_the_same_device(again):
    assert again(Device("cuda:1:autodiff")) is Device("cuda:1:autodiff")


def test_naming_a_gpu_does_not_need_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(Device("cuda:7"), "_library", None)
    with pytest.raises(DeviceError, match=r"pip install 'burnish\[cuda13\]'"):
        Device("cuda:7").put(np.ones(1))
    with pytest.raises(DeviceError, match="CuPy is not installed"):
        library("cuda")


def test_putting_copies_only_when_it_must():
    array = np.ones(3)
    assert Device("cpu").put(array) is array
    assert Device("cpu:autodiff").put(array, np.float64) is array
    assert Device("cpu").put(array, "float32").dtype == np.float32
    assert Device("cpu").put([1, 2]).tolist() == [1, 2]


def test_where_arrays_live():
    assert namespace(1, None, np.ones(1)) is np
    assert namespace() is np
    assert Device.of(np.ones(1)) is Device("cpu")
    assert on_host([1, 2]).tolist() == [1, 2]


def test_tensors_move_between_recording_and_not():
    x = Tensor([1.0, 2.0])
    assert x.device is Device("cpu")
    moved = x.to("cpu:autodiff")
    assert moved.data is x.data
    assert (moved * 2).device is Device("cpu:autodiff")
    assert Tensor(moved).device is Device("cpu:autodiff")
    assert Tensor([1.0], device="cpu:autodiff").device.is_autodiff


def gpu():
    try:
        return library("cuda")
    except DeviceError as error:
        pytest.skip(str(error))


def test_a_model_gives_the_same_on_a_gpu():
    gpu()
    model = nn.Linear(3, 2)
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    far = model.fork("cuda:autodiff")
    y = far(x.to("cuda"))
    np.testing.assert_allclose(y.numpy(), model(x).numpy(), rtol=1e-5)
    assert y.device is Device("cuda:0:autodiff")
    gradients = y.backward(y.detach())
    near = model.train()
    y = near(x)
    expected = near.weight.grad(y.backward(y.detach()))
    np.testing.assert_allclose(
        far.weight.grad(gradients).numpy(), expected.numpy(), rtol=1e-4
    )
    assert model.device is Device("cpu")
    with pytest.raises(DeviceError, match="move one with"):
        far(x)
    assert far.to("cpu").weight.tolist() == model.weight.tolist()


@pytest.mark.parametrize(
    ("given", "there", "in_a_browser"),
    [("int64", "int64", "int32"), ("uint64", "uint64", "int32")]
    + [(same, same, same) for same in ("int32", "uint8", "float64", "bool")],
)
def test_indices_are_no_wider_than_an_address(monkeypatch, given, there, in_a_browser):
    array = np.ones(3, given)
    for size, kept in ((8, there), (4, in_a_browser)):
        monkeypatch.setattr(importlib.import_module(NAMESPACE), "_ADDRESS", size)
        assert as_indices(array).dtype == kept
        assert as_indices([0, 1]) == [0, 1]


NAMESPACE = "burnish.backend.namespace"
"""The module; the package has a function of its name."""


def test_what_failed_at_the_first_array_of_cupy_is_done_at_the_next(monkeypatch):
    class Array:
        """Stands for CuPy's."""

    fake = types.SimpleNamespace(ndarray=Array)
    done = []

    def fails_once():
        done.append(len(done))
        if len(done) == 1:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "cupy", fake)
    place = sys.modules["burnish.backend.namespace"]
    monkeypatch.setattr(place, "at_first_cupy", [fails_once])
    with pytest.raises(KeyboardInterrupt):
        namespace(Array())
    assert [namespace(Array()) for _ in range(3)] == [fake] * 3
    assert done == [0, 1]
