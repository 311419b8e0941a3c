"""Damaged and hostile records: one RecordError with the path, or the same values."""

import gzip
import io
import json
import random
import re
import zipfile
import zlib

import numpy as np
import pytest

from burnish.errors import RecordError
from burnish.record import (
    BinGzRecorder,
    BinRecorder,
    JsonGzRecorder,
    NamedMpkGzRecorder,
    NamedMpkRecorder,
    NpzRecorder,
    PrettyJsonRecorder,
    SafetensorsRecorder,
)
from tests.runtime.record.harness import RECORDERS, same

RNG = np.random.default_rng(0)
STATE = {
    "model": {"w": RNG.standard_normal((3, 2)).astype("float32"), "n": np.arange(2)},
    "epoch": 3,
    "done": [True, 0.5],
}
SEALED = [
    SafetensorsRecorder,
    NamedMpkRecorder,
    BinRecorder,
    PrettyJsonRecorder,
    NpzRecorder,
]
"""Those whose checksum is of every byte; gzip's header has some without."""


def outcome(recorder, data):
    """ "refused", or "same" where what was loaded is what was recorded."""
    try:
        loaded = recorder.load(data)
    except RecordError as error:
        message = str(error)
    else:
        same(loaded, STATE)
        return "same"
    assert "bytes: " in message
    assert len(message) < 400
    return "refused"


@pytest.mark.parametrize("kind", RECORDERS)
def test_a_flipped_bit_never_loads_as_something_else(kind):
    recorder = kind(None)
    data = recorder.to_bytes(STATE)
    bits = range(8 * len(data)) if kind in SEALED else range(0, 8 * len(data), 3)
    outcomes = {"refused": 0, "same": 0}
    for bit in bits:
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        outcomes[outcome(recorder, damaged)] += 1
    if kind in SEALED:
        # what says that there is a checksum
        assert outcomes["same"] <= 8 * len('{"__metadata__":{"burnish.crc32":"')
    assert outcomes["refused"] > len(bits) // 2


@pytest.mark.parametrize("kind", RECORDERS)
def test_a_truncated_file_is_refused_with_its_path(kind, tmp_path):
    recorder = kind(None)
    path = recorder.record(STATE, tmp_path / "state")
    data = path.read_bytes()
    for size in range(len(data)):
        assert outcome(recorder, data[:size]) == "refused"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(RecordError, match=rf"state\{recorder.suffix}: expected"):
        recorder.load(path)


@pytest.mark.parametrize("kind", SEALED)
def test_more_at_the_end_is_refused(kind):
    recorder = kind(None)
    assert outcome(recorder, recorder.to_bytes(STATE) + b"\0") == "refused"


@pytest.mark.parametrize("kind", RECORDERS)
@pytest.mark.parametrize("other", RECORDERS)
def test_another_format_is_refused(kind, other):
    data = other(None).to_bytes(STATE)
    if kind(None).suffix == other(None).suffix:
        assert outcome(kind(None), data) == "same"
    else:
        with pytest.raises(
            RecordError, match=f"expected .*{kind.format.kind}"
        ) as raised:
            kind(None).load(data)
        named = other.__name__.replace("Compact", "Safetensors")
        both = kind(None).suffix.endswith(".gz") and other(None).suffix.endswith(".gz")
        assert both or re.search(rf"; try .*{named}", str(raised.value))


@pytest.mark.parametrize("kind", RECORDERS)
def test_a_missing_file_is_pythons_own_error(kind, tmp_path):
    suffix = kind(None).suffix
    with pytest.raises(FileNotFoundError, match=rf"none\{suffix}'"):
        kind(None).load(tmp_path / "none")


def sealed(data):
    return data + zlib.crc32(data).to_bytes(4, "big")


def binary(head, body=b""):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return sealed(b"BURNISH1" + len(text).to_bytes(8, "little") + text + body)


def mpk(page, tail=b""):
    import msgspec

    return msgspec.msgpack.encode(page) + tail


def text(**page):
    return json.dumps({"version": 1, "tensors": {}} | page).encode()


def row(dtype="float32", shape=(2,)):
    return [{"version": 1}, [["x", dtype, shape]]]


V1 = {"version": 1}
HOSTILE = {
    "version": (BinRecorder, binary([{"version": 2}, []]), "of version 1, got 2"),
    "no version": (BinRecorder, binary([{}, []]), "KeyError: 'version'"),
    "no page": (BinRecorder, binary([None, []]), "TypeError"),
    "head": (BinRecorder, binary(b"{" * 100_000), "expected JSON text"),
    "nested": (BinRecorder, binary(b"[" * 100_000), "maximum recursion depth"),
    "long head": (BinRecorder, sealed(b"BURNISH1" + b"\xff" * 8), "expected JSON text"),
    "dtype": (BinRecorder, binary(row("object"), bytes(8)), "got object"),
    "code": (BinRecorder, binary(row("load"), bytes(8)), "got load"),
    "no dtype": (BinRecorder, binary(row(3), bytes(8)), "expected"),
    "negative": (BinRecorder, binary(row(shape=[-2]), bytes(8)), "a shape of at most"),
    "fraction": (BinRecorder, binary(row(shape=[2.0]), bytes(8)), "a shape of at most"),
    "axes": (BinRecorder, binary(row(shape=[1] * 65), bytes(8)), "at most 64 sizes"),
    "large": (BinRecorder, binary(row(shape=[2**60]), bytes(8)), "bytes of float32"),
    "empty and large": (BinRecorder, binary(row(shape=[2**62, 2**62, 0])), "expected"),
    "short": (BinRecorder, binary(row(), bytes(4)), "expected 8 bytes of float32"),
    "rest": (BinRecorder, binary(row(), bytes(16)), "before the checksum, got"),
    "no such array": (
        BinRecorder,
        binary([V1 | {"item": {"$array": "y"}}, []]),
        "expected a record in binary: KeyError: 'y'",
    ),
    "a float": (
        BinRecorder,
        binary([V1 | {"item": {"$float": "1e"}}, []]),
        "expected a record in binary: ValueError",
    ),
    "dtypes": (
        BinRecorder,
        binary([V1 | {"dtypes": {"x": "object"}}, [["x", "float32", [2]]]], bytes(8)),
        "got object",
    ),
    "dtypes of none": (
        BinRecorder,
        binary([V1 | {"dtypes": {"y": "float32"}}, []]),
        "expected a record in binary: KeyError: 'y'",
    ),
    "ragged": (
        PrettyJsonRecorder,
        text(tensors={"x": {"dtype": "int8", "shape": [2], "data": [[1], [2, 3]]}}),
        "expected a record in JSON: ValueError",
    ),
    "other shape": (
        PrettyJsonRecorder,
        text(tensors={"x": {"dtype": "int8", "shape": [3], "data": [1, 2]}}),
        r"expected data of shape \(3,\), got \(2,\)",
    ),
    "words": (
        PrettyJsonRecorder,
        text(tensors={"x": {"dtype": "float32", "shape": [1], "data": ["x"]}}),
        "expected a record in JSON: ValueError",
    ),
    "too large": (
        PrettyJsonRecorder,
        text(tensors={"x": {"dtype": "int8", "shape": [1], "data": [300]}}),
        "expected a record in JSON: OverflowError",
    ),
    "no tensors": (PrettyJsonRecorder, b'{"version": 1}', "KeyError: 'tensors'"),
    "laid out anew": (
        PrettyJsonRecorder,
        text(crc32="00000000"),
        "take the field crc32 out of a file that was edited",
    ),
    "map": (NamedMpkRecorder, sealed(b"\xdf\xff\xff\xff\xff"), "expected a Mess"),
    "lists": (NamedMpkRecorder, sealed(b"\xdf" + b"\x91" * 99_999), "MessagePack"),
}


@pytest.mark.parametrize(("kind", "data", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_contents_are_named(kind, data, message, tmp_path):
    path = kind().path(tmp_path / "record")
    path.write_bytes(data)
    with pytest.raises(RecordError, match=rf"record\{kind().suffix}: .*{message}"):
        kind().load(path)


def mutated(data, chance):
    """`data` with a few bytes changed, taken out or put in."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, size = chance.randrange(len(data)), chance.randrange(1, 9)
        new = chance.randbytes(size)
        data[at : at + chance.choice([0, size, 2 * size])] = new
        if chance.random() < 0.3:
            del data[at : at + size]
    return bytes(data)


def sealed_archive(data):
    return data[:-8] + b"%08x" % zlib.crc32(data[:-8])


def archive_of_numpy(save):
    file = io.BytesIO()
    save(file, w=np.arange(5.0), b=np.ones((2, 2), "int16"))
    return file.getvalue()


def edited(data):
    """JSON without its checksum."""
    page = json.loads(data)
    del page["crc32"]
    return json.dumps(page).encode()


HALF = {kind: kind("half").to_bytes(STATE) for kind in SEALED}
MUTATED = {
    "binary": (BinRecorder, HALF[BinRecorder][:-4], sealed),
    "MessagePack": (NamedMpkRecorder, HALF[NamedMpkRecorder][:-4], sealed),
    "JSON": (PrettyJsonRecorder, edited(HALF[PrettyJsonRecorder]), bytes),
    "archive": (NpzRecorder, HALF[NpzRecorder], sealed_archive),
    "theirs": (NpzRecorder, archive_of_numpy(np.savez), bytes),
    "compressed": (NpzRecorder, archive_of_numpy(np.savez_compressed), bytes),
    "safetensors": (
        SafetensorsRecorder,
        HALF[SafetensorsRecorder].replace(b"burnish.crc32", b"something.els"),
        bytes,
    ),
}


@pytest.mark.parametrize(("kind", "data", "seal"), MUTATED.values(), ids=MUTATED)
def test_whatever_a_file_holds_there_is_one_kind_of_error(kind, data, seal):
    chance, refused = random.Random(0), 0
    for _ in range(1000):
        try:
            kind().load(seal(mutated(data, chance)))
        except RecordError:
            refused += 1
    assert refused > 500


def test_the_messages_of_damage(tmp_path):
    for kind in (*SEALED, BinGzRecorder, JsonGzRecorder, NamedMpkGzRecorder):
        path = kind(None).record({"w": np.arange(400.0)}, tmp_path / "w")
        data = bytearray(path.read_bytes())
        if path.suffix == ".gz":
            data = bytearray(gzip.decompress(data))
        data[len(data) // 2] ^= 1
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        with pytest.raises(
            RecordError, match=r"w\..*: .*checksum.*the file is damaged"
        ):
            kind(None).load(path)
    path = tmp_path / "theirs.npz"
    np.savez(path, w=np.arange(400.0))
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with pytest.raises(RecordError, match=r"whole ZIP archive: .*w\.npy' does not"):
        NpzRecorder().load(path)


def test_edited_text_loads_without_its_checksum(tmp_path):
    recorder = PrettyJsonRecorder()
    path = recorder.record({"w": np.array([1.5, 2.0])}, tmp_path / "w")
    page = json.loads(path.read_text())
    page["tensors"]["w"]["data"][0] = 2.5
    path.write_text(json.dumps(page))
    with pytest.raises(RecordError, match=r"w\.json: .*take the field crc32 out"):
        recorder.load(path)
    del page["crc32"]
    path.write_text(json.dumps(page))
    same(recorder.load(path), {"w": np.array([2.5, 2.0])})


def test_an_archive_of_pickles_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    NpzRecorder().record({"x": np.arange(2)}, path)
    with zipfile.ZipFile(path) as archive:
        page = archive.read("burnish.json")
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
        archive.writestr("burnish.json", page)
        archive.comment = b"burnish.crc32:" + bytes(8)
    data = path.read_bytes()[:-8]
    path.write_bytes(data + b"%08x" % zlib.crc32(data))
    with pytest.raises(RecordError, match=r"x\.npz: .*got pickled objects"):
        NpzRecorder().load(path)
