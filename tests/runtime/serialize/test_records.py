"""Safetensors files: round trips, agreement with the safetensors package, streaming."""

import math
import sys
from pathlib import Path

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from burnish import serialize
from burnish.errors import RecordError
from burnish.serialize import load_file, release, save_file
from burnish.serialize.elements import BITS, dtype_of

PLAIN = [
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64"),
]

arrays = st.sampled_from(PLAIN).flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)
    )
)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
states = st.dictionaries(
    names.filter(lambda n: n != "__metadata__"), arrays, max_size=5
)


def same(got, expected):
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes()


@given(states, st.dictionaries(names, names, max_size=1))
def test_bytes_are_those_of_the_safetensors_package(state, metadata):
    data = serialize.to_bytes(state, metadata)
    assert data == safetensors.numpy.save(state, metadata or None)
    same(serialize.from_bytes(data), state)
    same(safetensors.numpy.load(data), state)


@given(states)
def test_files_open_with_the_safetensors_package_and_back(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("files")
    serialize.save_file(state, folder / "ours.safetensors")
    same(safetensors.numpy.load_file(folder / "ours.safetensors"), state)
    safetensors.numpy.save_file(state, folder / "theirs.safetensors")
    same(serialize.load_file(folder / "theirs.safetensors"), state)


@pytest.mark.parametrize("code", BITS)
def test_every_element_type_survives(code):
    dtype = dtype_of(code, "test")
    values = np.arange(24).astype(np.int8 if dtype.kind in "iu" else np.float32)
    array = (values % 7).astype(dtype).reshape(2, 3, 4)
    data = serialize.to_bytes({"x": array})
    same(serialize.from_bytes(data), {"x": array})
    head = data[8 : 8 + int.from_bytes(data[:8], "little")]
    assert len(data) == 8 + len(head) + math.ceil(24 * BITS[code] / 8)
    assert f'"{code}"'.encode() in head


def test_four_bit_elements_fill_the_low_half_of_a_byte_first():
    array = np.array([1.0, -6.0], ml_dtypes.float4_e2m1fn)
    assert serialize.to_bytes({"x": array})[-1:] == bytes([0xF2])


@pytest.mark.parametrize(
    ("name", "wider"),
    {"int2": "int8", "uint2": "uint8", "int4": "int8", "uint4": "uint8"}.items(),
)
def test_integers_that_the_format_has_not_are_held_in_eight_bits(name, wider):
    dtype = getattr(ml_dtypes, name)
    array = np.array([ml_dtypes.iinfo(dtype).min, -1 % 3, 1], dtype)
    data = serialize.to_bytes({"x": array})
    same(serialize.from_bytes(data), {"x": array.astype(wider)})
    same(safetensors.numpy.load(data), {"x": array.astype(wider)})


def test_bfloat16_without_ml_dtypes_is_widened(monkeypatch):
    data = serialize.to_bytes({"x": np.array([1.5, -2.25, np.inf], ml_dtypes.bfloat16)})
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = serialize.from_bytes(data)["x"]
    assert x.dtype == np.float32
    assert x.tolist() == [1.5, -2.25, np.inf]


def test_a_small_float_without_ml_dtypes_names_the_install_line(monkeypatch):
    data = serialize.to_bytes({"x": np.ones(2, ml_dtypes.float8_e5m2)})
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(RecordError, match=r"'x': .*F8_E5M2.*pip install ml_dtypes$"):
        serialize.from_bytes(data)


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24.0).reshape(4, 6)[::2, ::-3],
        np.broadcast_to(np.float32(3), (2, 5)),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.array(7, ">f8"),
    ],
)
def test_memory_order_and_byte_order_do_not_matter(array):
    (loaded,) = serialize.from_bytes(serialize.to_bytes({"x": array})).values()
    np.testing.assert_array_equal(loaded, array)
    assert loaded.dtype.isnative


def test_tensors_may_be_called_as_the_fields_of_an_entry():
    state = dict.fromkeys(["dtype", "shape", "data_offsets"], np.ones(2))
    metadata = {"dtype": "a", "shape": "b", "data_offsets": "c"}
    data = serialize.to_bytes(state, metadata)
    same(serialize.from_bytes(data), state)
    assert serialize.open_weights(data).metadata == metadata


def test_metadata_comes_back(tmp_path):
    path = tmp_path / "a.safetensors"
    serialize.save_file({"x": np.ones(3)}, path, {"format": "pt", "step": "12"})
    head = serialize.header(path)
    assert head.metadata == {"format": "pt", "step": "12"}
    assert head.entries["x"] == ("F64", (3,), 0, 24)


def test_loaded_arrays_are_views_of_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    serialize.save_file({"x": np.ones(1000), "y": np.ones(10, np.int8)}, path)
    for array in serialize.load_file(path).values():
        assert not array.flags.owndata
        assert not array.flags.writeable
        assert array.flags.aligned


def test_misaligned_data_is_brought_to_its_place():
    body = bytes(1) + np.arange(3.0).tobytes()
    head = (
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        b'"b":{"dtype":"F64","shape":[3],"data_offsets":[1,25]}}'
    )
    x = serialize.from_bytes(len(head).to_bytes(8, "little") + head + body)["b"]
    assert x.tolist() == [0, 1, 2]
    assert x.flags.aligned


def test_a_stream_takes_arrays_bytes_chunks_and_functions(tmp_path):
    path, asked = tmp_path / "a.safetensors", []

    def late(name, value):
        def make():
            asked.append(name)
            return value

        return make

    ones = np.ones(4, np.float32)
    serialize.write_stream(
        path,
        [
            ("d", "float32", (4,), late("d", ones)),
            ("a", np.float32, [2, 2], late("a", ones.tobytes())),
            ("c", ones.dtype, (4,), iter([ones[:1].tobytes(), ones[1:].tobytes()])),
            ("b", "BF16", (8,), memoryview(bytes(16))),
        ],
        {"from": "a test"},
    )
    assert asked == ["a", "d"]
    loaded = serialize.load_file(path)
    assert {n: x.shape for n, x in loaded.items()} == {
        "a": (2, 2),
        "b": (8,),
        "c": (4,),
        "d": (4,),
    }
    assert (loaded["a"] == 1).all()


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ([("x", "F32", (2,), bytes(7))], "'x': expected 8 bytes, got 7"),
        (
            [("x", "F32", (2,), np.ones(2))],
            "'x': expected elements of F32, got float64",
        ),
        ([("x", "F4", (3,), bytes(2))], "'x': expected whole bytes, got 12 bits of F4"),
        ([("x", "F32", (0,), b"")] * 2, "expected a name used once, got 'x'"),
        ([("__metadata__", "U8", (0,), b"")], "a name used once, got '__metadata__'"),
        ([("\ud800", "U8", (0,), b"")], "a name is not Unicode text"),
        ([("x", "complex128", (0,), b"")], "'x': expected a dtype .* got complex128"),
        ([("x", object, (0,), b"")], "'x': expected a dtype .* got object"),
    ],
)
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(
    tmp_path, tensors, message
):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"before")
    with pytest.raises(RecordError, match=message) as caught:
        serialize.write_stream(path, tensors)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_in_a_source_leaves_nothing(tmp_path):
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serialize.write_stream(tmp_path / "a", [("x", "U8", (1,), fail)])
    assert list(tmp_path.iterdir()) == []


def test_metadata_must_be_strings():
    with pytest.raises(RecordError, match="metadata of strings"):
        serialize.to_bytes({}, {"step": 1})


def test_a_file_can_be_replaced_while_it_is_mapped(tmp_path):
    path = tmp_path / "a.safetensors"
    serialize.save_file({"x": np.zeros(5)}, path)
    state = serialize.load_file(path)
    serialize.save_file({"x": state["x"] + 1}, path)
    assert (state["x"] == 0).all()
    assert (serialize.load_file(path)["x"] == 1).all()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to("real")
    serialize.save_file({"x": np.zeros(5)}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_size > 40


@pytest.mark.oracle
def test_torch_reads_bfloat16_and_small_floats(tmp_path, torch):
    from safetensors.torch import load_file

    path = tmp_path / "a.safetensors"
    values = np.array([0.5, -1.5, 3.0])
    state = {
        "b": values.astype(ml_dtypes.bfloat16),
        "e4": values.astype(ml_dtypes.float8_e4m3fn),
        "e5": values.astype(ml_dtypes.float8_e5m2),
        "h": values.astype(np.float16),
    }
    serialize.save_file(state, path)
    loaded = load_file(path)
    assert loaded["b"].dtype == torch.bfloat16
    assert loaded["e4"].dtype == torch.float8_e4m3fn
    assert all(x.to(torch.float64).tolist() == values.tolist() for x in loaded.values())


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which pages are held")
def test_released_pages_are_not_held_and_come_back(tmp_path):
    wanted = np.arange(4 << 20, dtype=np.uint32)
    save_file({"small": wanted[:3], "large": wanted}, tmp_path / "m.safetensors")
    held = load_file(tmp_path / "m.safetensors")["large"]
    np.testing.assert_array_equal(held, wanted)
    before = _mapped()
    release(held)
    assert before - _mapped() > held.nbytes - (1 << 20)
    np.testing.assert_array_equal(held, wanted)


@pytest.mark.parametrize("array", [np.arange(99), np.arange(9)[::2], np.zeros((2, 0))])
def test_arrays_of_no_file_stay_as_they_are(array):
    wanted = array.copy()
    release(array)
    np.testing.assert_array_equal(array, wanted)


def _mapped() -> int:
    """The bytes of files that this process holds in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("RssFile"))
    return int(line.split()[1]) * 1024
