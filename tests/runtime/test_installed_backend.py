"""An array library that an installed package brings as a kind of device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import Device, Tensor, nn, ops, optim, rng
from burnish.backend import installed, namespace, on_host
from burnish.errors import DeviceError, InputError
from burnish.models.mnist.mnist import Model as Mnist
from burnish.operator import operator

LIBRARY = '''
"""NumPy behind a class that NumPy itself can do nothing with."""

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

waited = []


def _bare(item):
    if isinstance(item, ndarray):
        return item.held
    if isinstance(item, (list, tuple)):
        return type(item)(map(_bare, item))
    return item


def _kept(item):
    if isinstance(item, (np.ndarray, np.generic)):
        return ndarray(np.asarray(item))
    if type(item) in (list, tuple):
        return type(item)(map(_kept, item))
    return item


def _wrapped(function):
    def call(*args, **options):
        options = {key: _bare(value) for key, value in options.items()}
        return _kept(function(*map(_bare, args), **options))

    return call


class ndarray(NDArrayOperatorsMixin):
    def __init__(self, held):
        self.held = held

    def __array__(self, *args, **options):
        raise TypeError("it went to NumPy")

    def __array_ufunc__(self, ufunc, method, *args, out=None, **options):
        if out is not None:
            getattr(ufunc, method)(*map(_bare, args), out=_bare(out), **options)
            return out[0]
        return _wrapped(getattr(ufunc, method))(*args, **options)

    def __getattr__(self, name):
        found = getattr(self.held, name)
        plain = not callable(found) or name in ("flags", "dtype")
        return _kept(found) if plain else _wrapped(found)

    def __getitem__(self, index):
        return _kept(self.held[_bare(index)])

    def __setitem__(self, index, value):
        self.held[_bare(index)] = _bare(value)

    def __len__(self):
        return len(self.held)

    def __bool__(self):
        return bool(self.held)

    def __float__(self):
        return float(self.held)

    def __int__(self):
        return int(self.held)


def asnumpy(array):
    return array.held


def synchronize():
    waited.append(True)


def __getattr__(name):
    found = getattr(np, name)
    plain = isinstance(found, type) or not callable(found)
    return found if plain else _wrapped(found)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, as they are installed; one names a backend, toy."""
    about = tmp_path / "toy_arrays-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toy-arrays\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text("[burnish.backends]\ntoy = toy_arrays\n")
    (tmp_path / "toy_arrays.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(installed, "loaded", {})
    installed.kinds.cache_clear()
    yield tmp_path
    installed.kinds.cache_clear()
    sys.modules.pop("toy_arrays", None)
    Device._known = {k: v for k, v in Device._known.items() if k[0] != "toy"}


@pytest.mark.usefixtures("package")
def test_naming_it_imports_nothing() -> None:
    device = Device("toy")
    assert str(device) == "toy"
    assert Device("toy:0:autodiff").inner() is device
    assert "toy_arrays" not in sys.modules
    assert device.xp.__name__ == "toy_arrays"
    assert Device.enumerate()[-1] is device
    device.sync()
    assert device.xp.waited == [True]


@pytest.mark.usefixtures("package")
def test_tensors_go_there_and_back() -> None:
    x = np.array([[1, 2], [3, 4]], np.float32)
    there = Tensor(x).to("toy")
    assert str(there.device) == "toy"
    assert namespace(there.data).__name__ == "toy_arrays"
    assert Device.of(there.data) is Device("toy")
    y = ops.softmax(there @ there, axis=-1)
    assert y.device is there.device
    expected = ops.softmax(Tensor(x @ x)).numpy()
    np.testing.assert_allclose(on_host(y.data), expected, rtol=1e-5)
    assert there.to("cpu").device is Device("cpu")
    assert there.to("float64").dtype == np.float64


@pytest.mark.usefixtures("package")
def test_a_model_runs_and_trains_there() -> None:
    x = np.random.default_rng(0).random((3, 28, 28), np.float32)
    model = Mnist.from_file()
    expected = model(x).numpy()
    there = Mnist.from_file().to("toy")
    np.testing.assert_allclose(there(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    ends: list[Any] = []
    for device in ("cpu:autodiff", "toy:autodiff"):
        rng.seed(0)  # for dropout
        tuned = Mnist.from_file().to(device)
        loss = nn.CrossEntropyLoss()(
            tuned(Tensor(x, device=device)), Tensor([1, 2, 3], device=device)
        )
        gradients = optim.GradientsParams.from_grads(loss.backward(), tuned)
        optim.SGD().step(1e-3, tuned, gradients)
        ends.append(tuned.state_dict())
    for name, array in ends[0].items():
        np.testing.assert_allclose(on_host(ends[1][name]), array, 1e-4, 1e-5)


@pytest.mark.usefixtures("package")
def test_an_operator_has_a_kernel_for_it() -> None:
    @operator
    def tripled(x):  # type: ignore[no-untyped-def]
        return x * 3

    @tripled.on("toy_arrays")
    def _(x):  # type: ignore[no-untyped-def]
        return x * 0

    x = Tensor([1.0, 2.0])
    assert tripled(x).tolist() == [3, 6]
    assert tripled(x.to("toy")).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", r"device toy: .*'toy_arrays'.*ZeroDivisionError.*toy-arrays"),
        ("from numpy import *", "of toy-arrays has no asnumpy"),
    ],
)
def test_a_library_that_is_none(package: Path, text: str, message: str) -> None:
    (package / "toy_arrays.py").write_text(text)
    with pytest.raises(DeviceError, match=message):
        Tensor([1.0]).to("toy")


@pytest.mark.usefixtures("package")
def test_what_is_no_device_is_reported() -> None:
    with pytest.raises(DeviceError, match="expected 'cpu', 'toy', 'cuda' or 'cuda:N'"):
        Device("toi")
    with pytest.raises(DeviceError, match="expected 'cpu'"):
        Device("toy:1")
    with pytest.raises(InputError, match="expected a device such as 'cuda:0'"):
        Tensor([1.0]).to("toi")
