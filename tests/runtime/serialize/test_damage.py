"""Damaged and hostile files: one RecordError of one line, never anything else."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import serialize
from burnish.errors import RecordError

GOOD = serialize.to_bytes(
    {"weight": np.arange(6.0).reshape(2, 3), "bias": np.ones(3, np.float32)},
    {"format": "np"},
)


def file_of(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def deep(n):
    return b'{"x":' + b"[" * n + b"]" * n + b"}"


CASES = {
    "empty": (b"", "at least 8 bytes, got 0"),
    "short": (b"1234567", "at least 8 bytes, got 7"),
    "no header": (bytes(8), "a header in JSON"),
    "long header": ((100).to_bytes(8, "little") + b"{}", "at most 2 bytes, got one of"),
    "huge header": (b"\xff" * 20, "at most 12 bytes, got one of 18446744073709551615"),
    "not json": (file_of(b"hello"), "a header in JSON"),
    "not utf-8": (file_of(b'{"\xff": 1}'), "a header in JSON.*utf-8"),
    "lone surrogate": (file_of(b'{"\\ud800": 1}'), "names of Unicode text"),
    "nested": (file_of(deep(100_000)), "a header in JSON"),
    "nested a little": (file_of(deep(500)), "'x': expected dtype, shape and data_off"),
    "many lists": (file_of(b'{"x":[' + b"[]," * 10**6 + b"0]}"), "bytes of memory"),
    "long number": (
        file_of(b'{"x": ' + b"9" * 5000 + b"}"),
        "'x': expected dtype.* inf",
    ),
    "a list": (file_of([]), "a JSON object"),
    "a number": (file_of(3), "JSON"),
    "text": (file_of("abc"), "a JSON object"),
    "null": (file_of(None), "JSON"),
    "twice": (file_of(b'{"x": 1, "x": 2}'), "'x' occurs twice"),
    "twice inside": (
        file_of(b'{"x": {"dtype": 1, "dtype": 2}}'),
        "'dtype' occurs twice",
    ),
    "metadata": (file_of({"__metadata__": {"a": 1}}), "__metadata__ of strings"),
    "metadata list": (file_of({"__metadata__": ["a"]}), "__metadata__ of strings"),
    "no fields": (file_of({"x": {}}), "'x': expected dtype, shape and data_offsets"),
    "more": (
        file_of({"x": entry(a=1)}, bytes(8)),
        "expected dtype, shape and data_off",
    ),
    "dtype": (file_of({"x": entry("F31")}, bytes(8)), "a dtype out of BOOL.*'F31'"),
    "dtype list": (file_of({"x": entry(["F32"])}, bytes(8)), "a dtype out of BOOL"),
    "negative": (file_of({"x": entry(shape=[-2])}, bytes(8)), "a shape of .*-2"),
    "fraction": (file_of({"x": entry(shape=[2.0])}, bytes(8)), "a shape of .*2.0"),
    "truth": (file_of({"x": entry(shape=[True, 2])}, bytes(8)), "a shape of .*True"),
    "scalar shape": (file_of({"x": entry(shape=2)}, bytes(8)), "a shape of"),
    "axes": (file_of({"x": entry("U8", [1] * 65, [0, 1])}, b"1"), "at most 64 sizes"),
    "too large": (
        file_of({"x": entry(shape=[2**62, 2**62, 0], offsets=[0, 0])}),
        "'x': shape .* is too large",
    ),
    "offsets": (
        file_of({"x": entry(offsets=[8, 0])}, bytes(8)),
        "data_offsets \\[start",
    ),
    "three": (
        file_of({"x": entry(offsets=[0, 4, 8])}, bytes(8)),
        "data_offsets \\[start",
    ),
    "size": (file_of({"x": entry(shape=[3])}, bytes(8)), "expected 12 bytes for F32"),
    "overflow": (
        file_of({"x": entry(shape=[2**32, 2**32, 4])}, bytes(8)),
        "expected 295147905179352825856 bytes for F32",
    ),
    "half a byte": (
        file_of({"x": entry("F4", [1], [0, 1])}, b"1"),
        "expected whole bytes",
    ),
    "gap": (file_of({"x": entry(offsets=[4, 12])}, bytes(12)), "to start at 0.* got 4"),
    "overlap": (
        file_of({"x": entry(), "y": entry(offsets=[4, 12])}, bytes(12)),
        "'y': expected its data to start at 8, after the tensor before, got 4",
    ),
    "outside": (file_of({"x": entry()}, bytes(4)), "expected 8 bytes of data .* got 4"),
    "rest": (file_of({"x": entry()}, bytes(9)), "expected 8 bytes of data .* got 9"),
    "long name": (file_of({"x" * 500: entry()}, bytes(4)), "expected 8 bytes"),
    "long name with a fault": (
        file_of({"x" * 500: 1}),
        r"tensor 'xxx+\.\.\.: expected",
    ),
    "line ends in a name": (file_of({"a\nb": 1}), r"tensor 'a\\nb'"),
}


@pytest.mark.parametrize(("data", "message"), CASES.values(), ids=CASES)
def test_damage_is_named(data, message, tmp_path):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(data)
    for read in (lambda: serialize.load_file(path), lambda: serialize.from_bytes(data)):
        with pytest.raises(RecordError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 700
    with pytest.raises(RecordError, match=r"weights\.safetensors: "):
        serialize.load_file(path)


def test_a_missing_file_is_pythons_own_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        serialize.load_file(tmp_path / "none.safetensors")


def read(data):
    """A file's content and the reason of its refusal; one of them is None."""
    try:
        return {n: x.copy() for n, x in serialize.from_bytes(data).items()}, None
    except RecordError as error:
        return None, str(error)


@given(st.data())
def test_changed_bytes_are_refused_or_read(data):
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(GOOD) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    found, problem = read(bytes(damaged))
    assert found is not None or "\n" not in problem


@given(st.integers(0, len(GOOD) - 1))
def test_every_truncation_is_refused(length):
    found, problem = read(GOOD[:length])
    assert found is None
    assert "\n" not in problem


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.text(max_size=4) | st.just("__metadata__"),
        values
        | st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F32", "U8", "F4", "BOOL"]) | values,
                "shape": st.lists(st.integers(-1, 4), max_size=3) | values,
                "data_offsets": st.lists(st.integers(-1, 32), min_size=2, max_size=2),
            }
        ),
        max_size=3,
    ),
    st.binary(max_size=32),
)
def test_any_header_is_refused_or_read(header, body):
    found, problem = read(file_of(header, body))
    assert found is not None or "\n" not in problem
    whole = [x for x in (found or {}).values() if x.dtype.kind != "V"]
    assert sum(x.nbytes for x in whole) <= len(body)


def test_a_file_that_ends_in_its_header_is_no_pickle(tmp_path):
    path = tmp_path / "cut.safetensors"
    path.write_bytes(file_of({"x": entry()})[:20])
    with pytest.raises(RecordError, match=r"header of at most 12 bytes.*download"):
        serialize.open_weights(path)
