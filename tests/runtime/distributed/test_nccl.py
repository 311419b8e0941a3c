"""Processes with a GPU each find one another before NCCL connects them."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from burnish import Device
from burnish.backend.cuda.graphs import live
from burnish.backend.nccl import fetched, given_out
from burnish.distributed import nccl
from burnish.errors import DeviceError


@pytest.fixture
def place():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()


@pytest.mark.parametrize("count", [1, 3])
def test_all_get_what_the_first_one_gives(place, count):
    data = bytes(range(128))
    found = []
    others = [
        threading.Thread(target=lambda: found.append(fetched(place, 20)))
        for _ in range(count)
    ]
    for each in others:  # they may start before the first one
        each.start()
    given_out(data, count, place, 20)
    for each in others:
        each.join()
    assert found == [data] * count


def test_a_missing_process_is_an_error(place):
    with pytest.raises(DeviceError, match="expected 2 more processes"):
        given_out(b"1", 2, place, 0.2)
    with pytest.raises(DeviceError, match="gives nothing"):
        fetched(place, 0.2)


class Summed:
    """Sums of all threads' arrays, which are of one size and dtype as NCCL's are."""

    def __init__(self, count):
        self.barrier, self.given = threading.Barrier(count, timeout=20), {}

    def sum_into(self, total, array):
        self.given[threading.get_ident()] = array.copy()
        self.barrier.wait()
        parts = list(self.given.values())
        assert len({(each.size, each.dtype) for each in parts}) == 1
        self.barrier.wait()
        total[...] = sum(parts)


def packed(arrays, dtype, weight):
    whole = np.concatenate([array.ravel() * weight for array in arrays]).astype(dtype)
    return whole, np.split(whole, np.cumsum([array.size for array in arrays])[:-1])


@pytest.mark.parametrize("flags", [(None, None, None), (0, 0, None), (1, 0, None)])
def test_graphs_and_plain_calls_of_several_processes_agree(flags, monkeypatch):
    """flags: whether a process's graph has an overflow; None is a plain call."""
    monkeypatch.setattr(nccl, "packed", packed)
    counts, summed = (8, 7, 0), Summed(3)

    def mean(rank):
        group = object.__new__(nccl.NcclGroup)
        group.rank, group.size, group.device = rank, 3, Device("cpu")
        group._all = summed
        overflow, places = np.array([flags[rank] or 0, 5], np.int32), None
        if flags[rank] is not None:
            places = SimpleNamespace(skips=SimpleNamespace(overflow=overflow))
        with live.kept_in(places):
            own = {"w": np.full((2, 3), rank, np.float32)}
            return group.mean(own, counts[rank])["w"], overflow

    with ThreadPoolExecutor(3) as processes:
        found = list(processes.map(mean, range(3)))
    for (made, overflow), flag in zip(found, flags, strict=True):
        np.testing.assert_allclose(made, np.full(6, 7 / 15), rtol=1e-6)
        skipped = flag is not None and any(flags[:2])
        assert overflow.tolist() == [skipped, 5]
