"""Calls by signature, with arrays and GPUs that stand for CuPy's."""

import contextlib
import sys
import types

import numpy as np
import pytest

from burnish.backend.cuda import calls
from burnish.errors import DeviceError
from burnish.operator import Operator


class Near:
    """An array that stands for one of CuPy's."""

    dtype, shape = np.dtype("f4"), (2, 3)

    def __init__(self, gpu=0, place=1024, strides=(12, 4)):
        self.data = types.SimpleNamespace(ptr=place, device_id=gpu)
        self.strides = strides
        self._c_contiguous = strides == (12, 4)


class Cuda:
    """So many GPUs, and which is the current one."""

    def __init__(self, count):
        self.now = 0
        self.runtime = types.SimpleNamespace(
            getDeviceCount=lambda: count, getDevice=lambda: self.now
        )

    @contextlib.contextmanager
    def Device(self, index):
        before, self.now = self.now, index
        yield
        self.now = before


@pytest.fixture
def machine(monkeypatch):
    """Called with a number of GPUs: a machine that has them."""

    def made(count):
        cuda = Cuda(count)
        fake = types.SimpleNamespace(ndarray=Near, cuda=cuda, __name__="cupy")
        monkeypatch.setitem(sys.modules, "cupy", fake)
        monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
        monkeypatch.setattr(calls, "gpus", cuda.runtime.getDeviceCount)
        namespace = sys.modules["burnish.backend.namespace"]
        monkeypatch.setattr(namespace, "at_first_cupy", [])
        return cuda

    return made


def counted():
    """A function to prepare, and how often it was."""
    times = []

    def prepare(*args, **options):
        times.append(args)
        return lambda *args: len(times)

    return prepare, times


NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ((Near(),), (Near(),), True),
        ((Near(place=1024),), (Near(place=2048),), True),
        ((Near(place=1024),), (Near(place=1028),), False),
        ((Near(),), (Near(strides=(4, 8)),), False),
        ((Near(strides=(4, 8)),), (Near(strides=(4, 8)),), True),
        ((Near(), None), (Near(), Near()), False),
        ((Near(), 1), (Near(), 1.0), False),
        ((Near(), 1), (Near(), True), False),
        ((Near(), 0.0), (Near(), -0.0), False),
        ((Near(), NAN), (Near(), float("nan")), True),
        ((Near(), "a"), (Near(), "a"), True),
        ((Near(), np.float32(0)), (Near(), np.float32(-0.0)), False),
        ((Near(), np.float32(1)), (Near(), np.float64(1)), False),
    ],
)
def test_arrays_alike_are_prepared_once(machine, one, other, alike):
    machine(1)
    prepare, times = counted()
    assert calls.called(prepare, one, {}) == 1
    assert calls.called(prepare, other, {}) == (1 if alike else 2)
    assert times == ([one] if alike else [one, other])


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"eps": 0.5}, {"eps": 0.5}, True),
        ({"eps": 0.0}, {"eps": -0.0}, False),
        ({"eps": NAN}, {"eps": float("nan")}, True),
        ({"axis": 1}, {"axis": 1.0}, False),
        ({"axis": 1}, {"axes": 1}, False),
        ({"axis": [1]}, {"axis": [1]}, False),  # nothing is remembered for a list
    ],
)
def test_options_decide_as_well(machine, one, other, alike):
    machine(1)
    prepare, _ = counted()
    assert calls.called(prepare, (Near(),), one) == 1
    assert calls.called(prepare, (Near(),), other) == (1 if alike else 2)


@pytest.mark.parametrize("args", [(), (1, 2.0), (np.ones(2),), (Near(), object())])
def test_other_arguments_are_not_for_kernels(machine, args):
    machine(1)
    prepare, times = counted()
    assert calls.called(prepare, args, {}) is None
    assert not times


def test_arrays_are_prepared_and_computed_on_their_own_gpu(machine):
    cuda = machine(2)
    places = []

    def prepare(x):
        places.append(("prepared", cuda.now))
        return lambda x: places.append(("run", cuda.now))

    for gpu, now in ((1, 0), (1, 1), (0, 1), (0, 0), (1, 0)):
        cuda.now = now
        calls.called(prepare, (Near(gpu),), {})
        assert cuda.now == now
    assert [gpu for what, gpu in places if what == "prepared"] == [1, 0]
    assert [gpu for what, gpu in places if what == "run"] == [1, 1, 0, 0, 1]


def test_kernels_compute_on_the_gpu_of_their_arrays(machine):
    cuda = machine(2)
    same = Operator(lambda x: "plain")
    same.on("cupy")(lambda x: cuda.now)
    assert [same(Near(gpu)) for gpu in (0, 1, 0)] == [0, 1, 0]
    assert cuda.now == 0


@pytest.mark.parametrize("owns", [False, True])
def test_arrays_of_two_gpus_are_refused(machine, owns):
    machine(2)
    joined = Operator(lambda x, y: "plain")
    joined.prepared(lambda x, y: lambda x, y: "prepared")
    if owns:
        joined.on("cupy")(lambda x, y: "own")
    with pytest.raises(DeviceError, match="got some on 'cuda:0' and 'cuda:1'; move"):
        joined(Near(0), Near(1))
    assert joined(Near(1), Near(1)) == ("own" if owns else "prepared")


def test_kernels_and_rules_for_cupy_go_before_what_is_prepared(machine):
    machine(1)
    same, x = Operator(lambda x: "plain"), Near()
    same.vjp("x")(lambda g, y, x: "plain")
    same.prepared(lambda x: lambda x: "prepared")
    same.prepared_vjp(lambda g, y, x, *, needed: lambda g, y, x: ["prepared"])

    def found():
        return same(x), *same.pull(x, x, (x,), {}, [True])

    assert found() == ("prepared", "prepared")
    same.on("cupy")(lambda x: "own")
    same.vjp("x", on="cupy")(lambda g, y, x: "own")
    assert found() == ("own", "own")
    del same.kernels["cupy"], same.rules_on["cupy"]
    same.prepared(lambda x: None)
    same.prepared_vjp(lambda g, y, x, *, needed: lambda g, y, x: None)
    assert found() == ("plain", "plain")
