"""IDX files: every element type, compression, and damage."""

import gzip
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import data
from burnish.errors import InputError, RecordError

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def idx(array):
    kind = array.dtype.str[1:]
    head = struct.pack(f">HBB{array.ndim}I", 0, CODES[kind], array.ndim, *array.shape)
    return head + array.astype(f">{kind}").tobytes()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", [(3, 2, 2), (5,), (), (0, 4)])
@pytest.mark.parametrize("kind", CODES)
def test_every_type_and_shape(tmp_path, kind, shape, packed):
    array = np.arange(np.prod(shape)).astype(kind).reshape(shape)
    array[...] -= np.array(3 * (kind != "u1"), kind)
    path = tmp_path / "some.idx"
    path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    got = data.read_idx(path)
    assert got.dtype == array.dtype
    assert got.dtype.isnative
    assert got.shape == shape
    assert (got == array).all()


GOOD = idx(np.arange(6, dtype="i4").reshape(2, 3))
DAMAGE = {
    "empty": (b"", "expected 4 more bytes, got 0"),
    "text": (b"P5 28 28 255", "expected an IDX file, .*got 50 35 20"),
    "type": (b"\0\0\x0a\1" + bytes(8), "expected an IDX file"),
    "sizes": (GOOD[:10], "expected 8 more bytes, got 6"),
    "short": (GOOD[:-1], "bytes for shape|more bytes"),
    "long": (GOOD + b"x", "expected the end after 24 bytes, got more"),
    "huge": (b"\0\0\x0e\x04" + b"\xff" * 16, "expected .* bytes for shape"),
    "axes": (b"\0\0\x08\xff" + bytes(4 * 255), "at most 64 axes, got 255"),
    "nothing, but huge": (
        b"\0\0\x0e\x04" + bytes(4) + b"\xff" * 12,
        r"shape \(0, .* is too large",
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("content", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named(tmp_path, content, message, packed):
    path = tmp_path / "images.idx"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(RecordError, match=message) as caught:
        data.read_idx(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@given(st.data())
def test_a_damaged_gzip_is_refused_or_read(tmp_path_factory, data_):
    path = tmp_path_factory.mktemp("idx") / "a.gz"
    content = bytearray(gzip.compress(GOOD))
    place = data_.draw(st.integers(0, len(content) - 1))
    content[place] ^= data_.draw(st.integers(1, 255))
    path.write_bytes(content[: data_.draw(st.integers(0, len(content)))])
    with suppress(RecordError):
        assert data.read_idx(path).tolist() == [[0, 1, 2], [3, 4, 5]]


def write_mnist(folder, images=7, labels=7, ending=""):
    for split, count in (("train", images), ("t10k", 3)):
        array = np.arange(count * 784).astype("u1").reshape(count, 28, 28)
        pages = {"images-idx3": array, "labels-idx1": np.arange(labels, dtype="u1")}
        if split == "t10k":
            pages["labels-idx1"] = np.arange(3, dtype="u1")
        for name, page in pages.items():
            content = idx(page)
            path = folder / f"{split}-{name}-ubyte{ending}"
            path.write_bytes(gzip.compress(content) if ending else content)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_mnist_from_a_folder(tmp_path, ending):
    write_mnist(tmp_path, ending=ending)
    train, test = (data.MnistDataset(tmp_path, split) for split in ("train", "test"))
    assert (len(train), len(test)) == (7, 3)
    image, label = train[2]
    assert image.shape == (28, 28)
    assert image.dtype == np.uint8
    assert (label, label.dtype) == (2, np.int64)


def test_mnist_that_does_not_fit(tmp_path):
    write_mnist(tmp_path, labels=6)
    with pytest.raises(RecordError, match="as many labels as images, got 6 and 7"):
        data.MnistDataset(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(GOOD)
    with pytest.raises(RecordError, match=r"with 3 axes, got int32 \(2, 3\)"):
        data.MnistDataset(tmp_path)
    with pytest.raises(FileNotFoundError, match="train-images"):
        data.MnistDataset(tmp_path / "none")
    with pytest.raises(InputError, match="'train' or 'test', got 'valid'"):
        data.MnistDataset(tmp_path, "valid")
