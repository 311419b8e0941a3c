"""Addresses of arrays, read from the objects or as Python's interface says them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import burnish
from burnish.kernels import direct, library
from burnish.kernels.records import BY_NAME, record_of, records_of


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros((4, 5), np.int8)[1:, 2:],
        np.zeros(4)[::-1],
        np.zeros(()),
        np.zeros((0, 3)),
        np.zeros(5).view(np.recarray),
        np.broadcast_to(np.float32(1), (3,)),
    ],
    ids=["whole", "part", "backwards", "one", "none", "subclass", "broadcast"],
)
def test_addresses_are_those_of_the_interface(array):
    assert direct.address(array) == array.__array_interface__["data"][0]


def test_without_cpython_the_interface_is_asked(monkeypatch):
    monkeypatch.setattr(direct, "is_cpython", lambda: False)
    array = np.zeros(7)[2:]
    finder = direct._finder.__wrapped__()
    assert finder is direct._told
    assert finder(array) == array.ctypes.data


@pytest.mark.parametrize("kind", [np.ndarray, np.recarray])
@pytest.mark.parametrize("known", [True, False])
def test_arrays_of_any_class_are_launched_on(kind, known, monkeypatch):
    if library() is None:
        pytest.skip("no C compiler here")
    if not known:
        monkeypatch.setattr(direct, "_format", lambda: None)
    g, y, dx = (np.ones((3, 4), np.float32) for _ in range(3))
    fields = {"rows": 3, "width": 4, "inner": 1, "is_log": 0}
    direct.launch("softmax_gradient", 1, g=g.view(kind), y=y, out=dx, **fields)
    assert (dx == -3).all()


def test_one_record_is_as_one_of_several():
    names = BY_NAME["calibrate"].references
    fields = {"rows": np.int64(3), "width": 2.0, "x_row": 2, "low": True, "high": 5}
    places = list(range(len(names)))
    one = record_of("calibrate", 2, places, fields)
    assert one == records_of("calibrate", [2], [places], [fields])
    eps = {"count": 1, "channels": 2, "inner": 3, "eps": np.float32(0.5)}
    places = list(range(len(BY_NAME["batch_norm"].references)))
    one = record_of("batch_norm", 1, places, eps)
    assert one == records_of("batch_norm", [1], [places], [eps])


_TASKS = Path("/proc/self/task")


@pytest.mark.skipif(not _TASKS.exists(), reason="lists threads as Linux does")
def test_calls_of_fewer_shares_keep_the_threads():
    if library() is None:
        pytest.skip("no C compiler here")
    x, y = np.ones((8, 4), np.float32), np.empty((8, 4), np.float32)
    fields = {"x": x, "out": y, "rows": 8, "width": 4, "inner": 1}
    burnish.set_num_threads(4)
    try:
        seen = []
        for parts in (4, 2, 3, 1, 4):
            direct.launch("softmax", parts, **fields, zero_if_empty=0, is_log=0)
            seen.append({task.name for task in _TASKS.iterdir()})
        assert all(tasks <= seen[0] for tasks in seen)  # others may end meanwhile
    finally:
        burnish.set_num_threads(None)
