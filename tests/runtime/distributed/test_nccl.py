"""Processes with a GPU each find one another before NCCL connects them."""

import socket
import threading

import pytest

from burnish.backend.nccl import fetched, given_out
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
