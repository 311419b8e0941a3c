"""The cost of reading a record: bombs are refused, and no written record is one."""

import gzip
import io
import tracemalloc
import zlib

import numpy as np
import pytest

from burnish.errors import BudgetError
from burnish.record import (
    BinGzRecorder,
    JsonGzRecorder,
    NamedMpkGzRecorder,
    NamedMpkRecorder,
    NpzRecorder,
    PrettyJsonRecorder,
)

FLOOR, TIMES = 64 << 20, 10
WRITERS = (BinGzRecorder, JsonGzRecorder, NamedMpkGzRecorder)


def peak_of(action):
    tracemalloc.start()
    try:
        return action(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def archive(size):
    out = io.BytesIO()
    np.savez_compressed(out, w=np.zeros(size, np.uint8))
    return out.getvalue()


def message_pack(item):
    """A record whose plain values are these bytes of MessagePack."""
    parts = b"\xdf\0\0\0\4\xa7version\1\xa4item" + item + b"\xa7tensors\x80"
    parts += b"\xa5crc32\xc4\4"
    return parts + zlib.crc32(parts).to_bytes(4, "big")


BOMBS = {
    "gzip": (BinGzRecorder, gzip.compress(b"BURNISH1" + bytes(200 << 20), 9)),
    "json": (JsonGzRecorder, gzip.compress(b'{"a": [' + b"[]," * (4 << 20) + b"0]}")),
    "npz": (NpzRecorder, archive(200 << 20)),
    "maps": (
        NamedMpkRecorder,
        message_pack(b"\xdd" + (4 << 20).to_bytes(4, "big") + b"\x80" * (4 << 20)),
    ),
    "lists": (PrettyJsonRecorder, b'{"item": [' + b"[]," * (2 << 20) + b"0]}"),
}


@pytest.mark.parametrize(("kind", "data"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_before_it_fills_the_memory(kind, data):
    def read():
        with pytest.raises(BudgetError, match=r"bytes of memory .* pass limit=BYTES"):
            kind().load(data)

    _, peak = peak_of(read)
    assert peak < TIMES * len(data) + FLOOR


def test_a_file_that_is_trusted_is_read():
    held = NpzRecorder().load(archive(100 << 20), limit=1 << 30)
    assert held["w"].shape == (100 << 20,)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("precision", [None, "half"])
def test_zeros_in_gzip_are_read_again(kind, precision):
    """Zeros pack a thousand to one, as a bomb does; what is written is none."""
    count = 3_000_000 if kind is JsonGzRecorder else 30_000_000
    data = kind(precision).to_bytes({"w": np.zeros(count, np.float32)})
    held, peak = peak_of(lambda: kind().load(data))
    assert held["w"].shape == (count,)
    assert held["w"].dtype == np.float32
    assert not held["w"].any()
    assert peak < TIMES * len(data) + FLOOR


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8"])
def test_many_numbers_in_text_are_exact(dtype):
    values = np.random.default_rng(0).normal(size=(50, 1000)) * 100
    array = np.abs(values).astype(dtype)
    held = PrettyJsonRecorder().load(PrettyJsonRecorder().to_bytes({"w": array}))
    np.testing.assert_array_equal(held["w"], array)
