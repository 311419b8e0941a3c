"""PyTorch files without torch: samples, pickles by hand, hostile and large ones."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import types
import zipfile
from collections import OrderedDict
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from burnish import serialize
from burnish.errors import BudgetError, RecordError
from burnish.serialize import Inert, open_weights, read_pickle_data

SAMPLES = Path(__file__).parent / "samples"
BASE = np.arange(6, dtype=np.float32).reshape(2, 3)
RAW = BASE.tobytes()


@pytest.mark.parametrize("name", ["zip.pt", "zip4.pt", "legacy.pt", "legacy4.pt"])
def test_a_checkpoint(name):
    weights = open_weights(SAMPLES / name)
    tensors = weights.under("state_dict")
    expected = {
        "weight": BASE,
        "transposed": BASE.T,
        "tied": BASE,
        "bias": np.array([1, 2]),
        "flag": np.array([True, False]),
        "half": np.array([1.5, -2], ml_dtypes.bfloat16),
        "p": np.array(0.5, np.float32),
    }
    assert list(tensors) == list(expected)
    for key, array in expected.items():
        np.testing.assert_array_equal(tensors[key].read(), array)
        assert tensors[key].dtype == array.dtype.name
        assert tensors[key].nbytes == array.nbytes
    assert tensors["tied"].shares_memory(tensors["transposed"])
    assert np.shares_memory(tensors["tied"].read(), tensors["weight"].read())
    assert weights["array"].read().tolist() == [0, 1, 2]
    assert weights["list.0"].shape == (1,)
    tree = weights.tree
    assert (tree["epoch"], tree["rate"], tree["name"]) == (3, 0.1, "net")
    assert tree["list"][1:] == [2**70, None, True, b"\xff"]


def test_special_tensors():
    weights = open_weights(SAMPLES / "special.pt")
    assert weights["quantized"].read().tolist() == BASE.tolist()
    assert weights["quantized"].is_quantized
    assert weights["quantized"].values.read().dtype == np.int8
    assert weights["channels"].read().tolist() == BASE.tolist()
    assert weights["channels"].axis == 0
    assert weights["coo"].read().tolist() == BASE.tolist()
    assert weights["csr"].read().tolist() == BASE.tolist()
    assert weights["csr"].layout == "csr"
    assert weights["complex"].read().tolist() == [1 - 2j]
    assert weights["unsigned"].read().tolist() == [1, 65535]
    assert weights["float8"].read().astype(float).tolist() == [1, -2]


@pytest.mark.parametrize("name", ["tar.pt", "big_endian.pt"])
def test_old_and_foreign_files(name):
    weights = open_weights(SAMPLES / name)
    np.testing.assert_array_equal(weights["weight"].read(), BASE)
    np.testing.assert_array_equal(weights["transposed"].read(), BASE.T)


@pytest.mark.parametrize("name", ["module.pt", "script.pt"])
def test_whole_modules_are_refused_or_inert(name):
    with pytest.raises(
        RecordError, match=r"objects of .*nothing of them was run.*inert"
    ):
        open_weights(SAMPLES / name)
    weights = open_weights(SAMPLES / name, inert=True)
    np.testing.assert_array_equal(weights["fc.weight"].read(), BASE)
    assert weights["fc.bias"].read().tolist() == [1, 2]
    assert isinstance(weights.tree, Inert)


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_bytes_are_as_good_as_a_file(path):
    data = path.read_bytes()
    of_file, of_bytes = open_weights(path, True), open_weights(data, True)
    assert of_file.keys() == of_bytes.keys()
    assert of_file.kind == of_bytes.kind
    for name, tensor in of_file.items():
        np.testing.assert_array_equal(tensor.read(), of_bytes[name].read())


# --- plain pickles ---


@pytest.mark.parametrize("protocol", range(6))
def test_plain_pickles_of_numpy_arrays(protocol):
    value = {
        "a": BASE,
        "columns": np.asfortranarray(BASE),
        "swapped": BASE.astype(">f8"),
        "empty": np.zeros((0, 3), np.int8),
        "nested": [np.ones(2), OrderedDict(x=np.arange(3, dtype=np.uint16))],
        "scalar": np.float32(1.5),
        "numbers": (1, -(2**80), 1e300, True, None, "ü\n", b"\x00\xff"),
        "set": frozenset({1, "a"}),
    }
    weights = open_weights(pickle.dumps(value, protocol))
    names = ["a", "columns", "swapped", "empty", "nested.0", "nested.1.x"]
    assert list(weights) == names
    np.testing.assert_array_equal(weights["columns"].read(), BASE)
    np.testing.assert_array_equal(weights["swapped"].read(), BASE)
    assert weights["swapped"].read().dtype.isnative
    assert weights["nested.1.x"].dtype == "uint16"
    for key in ("scalar", "numbers", "set"):
        assert weights.tree[key] == value[key]


@pytest.mark.parametrize("protocol", range(6))
def test_objects_of_other_classes_are_inert(protocol):
    value = {"args": types.SimpleNamespace(rate=0.1, names=["a"]), "w": BASE}
    data = pickle.dumps(value, protocol)
    with pytest.raises(RecordError, match=r"objects of types\.SimpleNamespace"):
        open_weights(data)
    tree = read_pickle_data(data, inert=True)
    assert tree["args"].name == "types.SimpleNamespace"
    assert tree["args"].state == {"rate": 0.1, "names": ["a"]}


class Runs:
    def __reduce__(self):
        return os.mkdir, ("hacked",)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_runs(protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({"x": Runs()}, protocol)
    with pytest.raises(RecordError, match=r"objects of (posix|nt)\.mkdir"):
        open_weights(data)
    inert = read_pickle_data(data, inert=True)["x"]
    assert inert.args == ("hacked",)
    assert list(tmp_path.iterdir()) == []


def test_a_cycle_is_not_followed_for_ever():
    value = {"w": BASE, "list": []}
    value["list"].append(value)
    assert list(open_weights(pickle.dumps(value))) == ["w"]


def test_names_that_meet_are_refused():
    data = pickle.dumps({"a.b": BASE, "a": {"b": BASE + 1}})
    with pytest.raises(RecordError, match=r"two tensors are called 'a\.b'"):
        open_weights(data)


# --- by hand: what a hostile pickle says of a tensor ---


def tensor(shape="K\x02K\x03\x86", strides="K\x03K\x01\x86", offset="K\x00", count=6):
    """A pickle of one float32 tensor of storage 0."""
    text = (
        "\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((U\x07storage"
    )
    text += "ctorch\nFloatStorage\nU\x010U\x03cpu"
    return (
        (text + "J").encode("latin-1")
        + struct.pack("<i", count)
        + f"tQ{offset}{shape}{strides}\x89}}tRs.".encode("latin-1")
    )


def archive(pickled, data=RAW, **more):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        new.writestr("a/data.pkl", pickled)
        for name, raw in {"data/0": data, **more}.items():
            new.writestr(f"a/{name}", raw)
    return out.getvalue()


def test_a_tensor_by_hand():
    assert open_weights(archive(tensor()))["w"].read().tolist() == BASE.tolist()


@pytest.mark.parametrize("values", [["a", "b"], [None, "x"]])
def test_arrays_of_other_things_are_listed_and_not_read(values):
    held = open_weights(archive(pickle.dumps({"a": np.array(values)}, 2)))["a"]
    assert held.shape == (2,)
    with pytest.raises(RecordError, match="is not plain numbers and is not read"):
        held.read()


HOSTILE = {
    "behind the end": (archive(tensor(offset="K\x01")), "reach element 6 of .* with 6"),
    "long strides": (archive(tensor(strides="K\x04K\x01\x86")), "reach element 6"),
    "negative stride": (
        archive(tensor(strides="J\xff\xff\xff\xffK\x01\x86")),
        "strides with something else than sizes",
    ),
    "negative offset": (archive(tensor(offset="J\xff\xff\xff\xff")), "an offset of -1"),
    "negative size": (
        archive(tensor(shape="J\xff\xff\xff\xffK\x03\x86")),
        "a shape with",
    ),
    "no sizes": (archive(tensor(shape="NN\x86")), "a shape with"),
    "one stride": (
        archive(tensor(strides="K\x01\x85")),
        r"shape \[2, 3\] with strides",
    ),
    "more elements": (
        archive(tensor(count=7)),
        "expected 28 bytes, the archive has 24",
    ),
    "fewer bytes": (archive(tensor(), b"1234"), "expected 24 bytes, the archive has 4"),
    "no storage": (archive(tensor().replace(b"U\x010", b"U\x019")), "a/data/9"),
    "byte order": (archive(tensor(), byteorder=b"pdp11"), "byte order little or big"),
    "no pickle": (
        archive(b"").replace(b"data.pkl", b"data.txt"),
        "with data.pkl in it",
    ),
    "exported program": (
        archive(b"", archive_format=b"pt2").replace(b"data.pkl", b"data.txt"),
        "got a program of torch.export; save its state_dict",
    ),
    "empty pickle": (archive(b""), "expected 1 more bytes, got the end"),
    "unknown opcode": (
        archive(b"\x80\x02\xff."),
        "expected an opcode of pickle, got 0xff",
    ),
    "extension": (archive(b"\x80\x02\x82\x01."), "an extension of copyreg"),
    "buffer": (archive(b"\x80\x05\x97."), "a buffer outside of the pickle"),
    "empty stack": (archive(b"\x80\x02."), "a value on the stack, got none"),
    "memo": (archive(b"\x80\x02h\x05."), "something in memo place 5"),
    "far memo": (archive(b"\x80\x02Nr\xff\xff\xff\x7f."), "a place in the memo"),
    "list as key": (archive(b"\x80\x02}]Ns."), "expected a key, got list"),
    "large key": (
        archive(b"\x80\x02}\x8a\x09" + b"\x11" * 9 + b"Ns."),
        "a very large nu",
    ),
    "calls a number": (archive(b"\x80\x02K\x01)R."), "something to call, got int"),
    "bad arguments": (archive(b"\x80\x02ctorch\nSize\nK\x01\x85R."), "no tuple of at"),
    "checksum": (archive(tensor()).replace(b"cpu", b"cpv", 1), "have its checksum"),
    "cut off": (archive(tensor())[:-30], "a list of members at its end"),
    "not weights": (b"hello world", "safetensors or a PyTorch file, got 11 bytes"),
    "empty": (b"", "got an empty one; download or save it again"),
    "onnx": (b"\x08\x07\x12\x07pytorch", "safetensors or a PyTorch file"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(20), r"an HDF5 file \(Keras"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "page": (b"<!DOCTYPE html>", "a web page"),
    "deep": (archive(b"\x80\x02" + b"]" * 500 + b"N" + b"a" * 500 + b"."), "64 deep"),
    "integer": (archive(b"\x80\x02\x8b\xff\xff\xff\x00."), "an integer of a sane size"),
}


@pytest.mark.parametrize(("data", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused(data, message, tmp_path):
    path = tmp_path / "bad.pt"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=rf"bad\.pt: .*{message}") as caught:
        open_weights(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_small_storage_does_not_stand_for_a_huge_tensor():
    sizes = "J\xff\xff\xff\x7fK\x03\x86".encode("latin-1").decode("latin-1")
    data = archive(tensor(shape=sizes, strides="K\x00K\x01\x86"))
    assert open_weights(data)["w"].shape == (2**31 - 1, 3)
    with pytest.raises(RecordError, match="refused as too large"):
        open_weights(data)["w"].read()


def test_names_do_not_multiply():
    """Lists of lists of the same list: 2**60 tensors in a few hundred bytes."""
    value = [BASE]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(RecordError, match="bytes of memory for"):
        open_weights(pickle.dumps(value))


def test_a_few_bytes_do_not_ask_for_much_memory():
    for repeated in (b"]", b"}", b"(", b")\x85", b"\x8f"):
        data = b"\x80\x02" + repeated * 100_000 + b"."
        tracemalloc.start()
        with pytest.raises(RecordError, match="bytes of memory for"):
            open_weights(data, limit=2 << 20)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 << 20, repeated


def test_compressed_members_are_bounded():
    def packed(size):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            new.writestr("a/data.pkl", tensor(count=size // 4))
            new.writestr("a/data/0", bytes(size))
        return out.getvalue()

    np.testing.assert_array_equal(
        open_weights(packed(24))["w"].read(), np.zeros((2, 3))
    )
    held = open_weights(packed(1 << 26))["w"]  # unpacked when it is read
    with pytest.raises(BudgetError, match="bytes of memory for"):
        held.read()
    trusted = open_weights(packed(1 << 26), limit=1 << 28)["w"]
    assert not trusted.read().any()


# --- large files ---


def sparse_file(path, gigabytes):
    """A ZIP64 archive of one float32 tensor, all zeros, that takes no room on disk."""
    size = gigabytes << 30
    count = b"\x8a\x05" + (size // 4).to_bytes(5, "little")
    pickled = b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n(("
    pickled += b"U\x07storagectorch\nFloatStorage\nU\x010U\x03cpu" + count
    pickled += b"tQK\x00" + count + b"\x85K\x01\x85\x89}tRs."
    pickled += bytes(-(30 + 10 + len(pickled) + 30 + 8 + 20) % 64)  # values aligned
    wide = struct.pack("<HHQQ", 1, 16, size, size)
    members = ((b"a/data.pkl", pickled, b""), (b"a/data/0", None, wide))
    with path.open("wb") as out:
        central = b""
        for name, data, extra in members:
            short = 0xFFFFFFFF if data is None else len(data)
            common = struct.pack("<HHHHHIII", 45, 0, 0, 0, 33, 0, short, short)
            head = common + struct.pack("<HH", len(name), len(extra))
            start = out.tell()
            out.write(b"PK\x03\x04" + head + name + extra + (data or b""))
            out.seek(0 if data else size, os.SEEK_CUR)
            central += b"PK\x01\x02" + struct.pack("<H", 45) + head
            central += struct.pack("<HHHII", 0, 0, 0, 0, start) + name + extra
        start = out.tell()
        end = (44, 45, 45, 0, 0, 2, 2, len(central), start)
        out.write(central + b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", *end))
        out.write(b"PK\x06\x07" + struct.pack("<IQI", 0, start + len(central), 1))
        far = (0, 0, 2, 2, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        out.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", *far))


def sparse_safetensors(path, gigabytes):
    size = gigabytes << 30
    entry = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
    head = json.dumps({"w": entry}).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as out:
        out.write(len(head).to_bytes(8, "little") + head)
        out.truncate(8 + len(head) + size)


@pytest.mark.parametrize("make", [sparse_file, sparse_safetensors])
def test_opening_five_gigabytes_reads_the_header_alone(make, tmp_path):
    make(tmp_path / "large", 5)
    tracemalloc.start()
    weights = open_weights(tmp_path / "large")
    assert weights["w"].nbytes == 5 << 30
    last = weights["w"].read()[-3:]
    assert last.tolist() == [0, 0, 0]
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


# --- shards and folders ---


@pytest.mark.parametrize(
    ("stem", "ending"), [("model", ".safetensors"), ("pytorch_model", ".bin")]
)
def test_shards_and_folders(stem, ending, tmp_path):
    names = {f"layer.{i}.weight": f"{stem}-0000{i % 2}{ending}" for i in range(5)}
    for file in set(names.values()):
        part = {n: np.full(2, int(n[6])) for n in names if names[n] == file}
        serialize.save_file(part, tmp_path / file)
    index = tmp_path / f"{stem}{ending}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    for source in (tmp_path, index):
        weights = open_weights(source)
        assert list(weights) == list(names)
        assert [t.read()[0] for t in weights.values()] == list(range(5))
        assert weights.kind.endswith("in 2 shards")
    (tmp_path / names["layer.1.weight"]).unlink()
    with pytest.raises(RecordError, match="download all shards"):
        open_weights(tmp_path)


INDEXES = {
    "outside": ({"weight_map": {"a": "../a.bin"}}, "a file beside it, got '../a.bin'"),
    "absolute": ({"weight_map": {"a": "/etc/passwd"}}, "a file beside it"),
    "number": ({"weight_map": {"a": 3}}, "an index of shards"),
    "no map": ({"weights": {}}, "an index of shards"),
    "list": ({"weight_map": ["a"]}, "an index of shards"),
}


@pytest.mark.parametrize(("index", "message"), INDEXES.values(), ids=INDEXES)
def test_a_bad_index_is_refused(index, message, tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    with pytest.raises(RecordError, match=message):
        open_weights(path)


def test_an_index_that_names_what_is_not_there(tmp_path):
    serialize.save_file({"a": BASE}, tmp_path / "one.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"b": "one.safetensors"}}))
    with pytest.raises(RecordError, match=r"expected 'b' in one\.safetensors"):
        open_weights(index)


def test_a_folder_with_one_file_or_too_many(tmp_path):
    with pytest.raises(RecordError, match=r"a weights file .*, found none"):
        open_weights(tmp_path)
    serialize.save_file({"a": BASE}, tmp_path / "one.pth")
    assert list(open_weights(tmp_path)) == ["a"]
    serialize.save_file({"a": BASE}, tmp_path / "two.pth")
    with pytest.raises(RecordError, match=r"found one\.pth, two\.pth; name the one"):
        open_weights(tmp_path)


def test_an_unknown_name_says_what_is_near():
    weights = open_weights(serialize.to_bytes({"head.weight": BASE}))
    with pytest.raises(KeyError, match=r"is 'head\.weight' meant"):
        weights["head.weigth"]


def test_a_missing_key_of_the_tree_is_named():
    data = pickle.dumps({"config": {"depth": 3}})
    assert read_pickle_data(data, "config") == {"depth": 3}
    with pytest.raises(RecordError, match="a top-level key 'cfg', got 'config'"):
        read_pickle_data(data, "cfg")
