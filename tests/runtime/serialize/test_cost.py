"""Small files that would cost much: each is read or refused within the bound.

Ten times the file and 64 MiB of memory, a second a megabyte; each file is read in a
process of its own, whose address space is limited to that.
"""

import io
import json
import pickle
import struct
import subprocess
import sys
import textwrap
import zipfile

import pytest

from tests.harness.attempts import measured

MIB = 1 << 20

CHILD = textwrap.dedent(
    """
    import resource, sys, time
    import numpy, ml_dtypes, difflib, zlib, json, mmap
    from burnish.errors import RecordError
    from burnish.codegen.cli import _weights
    import burnish.record
    path, size = sys.argv[1], int(sys.argv[2])
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    most = taken + 10 * size + (64 << 20) + size
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    start = time.process_time()
    try:
        %s
    except RecordError as error:
        assert len(str(error)) < 900 + len(path), len(str(error))
        assert "\\n" not in str(error)
        print("refused", error)
    seconds = time.process_time() - start
    assert seconds < 3 + size / 1e6, seconds
    """
)
READ = "contents = _weights.contents(__import__('pathlib').Path(path), True)"
VALUES = "[t.read().copy() for t in burnish.serialize.open_weights(path).values()]"


def read_in_a_process(path, how=READ):
    done = subprocess.run(
        [sys.executable, "-c", CHILD % how, str(path), str(path.stat().st_size)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def legacy(*pickles):
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    return head + pickle.dumps({}, 2) + b"".join(pickles)


def doubled(times):
    """A tuple of twice the same tuple, and so on."""
    return b")q\x000" + b"h\x00h\x00\x86q\x000" * times + b"h\x00"


def slices(depth):
    """A slice whose end is a slice, and so on."""
    again = b"h\x00h\x01\x85Rq\x010" * depth
    return b"\x80\x02cbuiltins\nslice\nq\x000Nq\x010" + again + b"h\x01."


def called(name, argument, times):
    """A dict of one call of `name` with the same long argument again and again."""
    text = b"X" + struct.pack("<I", len(argument)) + argument
    begin = b"\x80\x02]c" + name + b"\nq\x00" + b"0" + text + b"q\x01" + b"0("
    return begin + b"h\x00h\x01\x85R" * times + b"e."


def keys(values):
    parts = [b"\x80\x02}("]
    parts += [b"\x8a\x08" + struct.pack("<q", value) + b"N" for value in values]
    return b"".join(parts) + b"u."


def colliding(count):
    """Keys of which the first fill a chain of places and the others walk along it."""
    place, chain, mask = 1, [], (1 << 19) - 1
    for _ in range(count):
        chain.append(place)
        place = (5 * place + 1) & mask
    walkers = [i << 43 | 1 for i in range(1, count // 2)]
    return keys(chain + walkers)


def packed(size):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("a/data.pkl", b"\x80\x02(" + b"N0" * (size // 2) + b"t.")
    return out.getvalue()


def views(count, rows):
    """Tensors that are one row of a storage of a mebibyte, many times over."""
    storage = b"ctorch\nFloatStorage\n"
    one = b"ctorch._utils\n_rebuild_tensor_v2\n((U\x07storage" + storage
    one += b"U\x010U\x03cpuJ" + struct.pack("<i", 1 << 18) + b"tQK\x00"
    one += b"J" + struct.pack("<i", rows) + b"J" + struct.pack("<i", 1 << 18) + b"\x86"
    one += b"K\x00K\x01\x86\x89}tR"
    body = b"".join(b"U\x02%02d" % i + one for i in range(count))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as new:
        new.writestr("a/data.pkl", b"\x80\x02}(" + body + b"u.")
        new.writestr("a/data/0", bytes(MIB))
    return out.getvalue()


LONG = "\U0001f600".encode() * (MIB // 4)
FILES = {
    "a version of tuples": (
        legacy()[:-4].replace(pickle.dumps(1001, 2), b"\x80\x02" + doubled(60) + b"."),
        "version 1001",
    ),
    "slices of slices": (slices(300_000), "whole numbers"),
    "tuples of tuples": (b"\x80\x02}U\x01k" + doubled(60) + b"s.", ""),
    "a size of tuples": (
        b"\x80\x02ctorch\nSize\n" + doubled(60) + b"\x85R.",
        "a torch.Size",
    ),
    "an encoded text": (called(b"_codecs\nencode", LONG, 600), "bytes of memory"),
    "a device's name": (called(b"torch\ndevice", LONG, 600), "no device"),
    "colliding keys": (colliding(200_000), "of work"),
    "a packed pickle": (packed(300 * MIB), "bytes of memory"),
    "a packed pickle of many steps": (packed(10 * MIB), "of work at most"),
    "an index of lists": (b'{"weight_map":[' + b"[]," * 4 * MIB + b"0]}", "bytes of m"),
    "an index of pairs": (
        b'{"weight_map":[' + b'{"a":0},' * MIB + b"0]}",
        "bytes of memory",
    ),
}


@pytest.mark.parametrize(("data", "message"), FILES.values(), ids=FILES)
@measured
def test_a_small_file_does_not_cost_much(data, message, tmp_path):
    path = tmp_path / "small.pt"
    path.write_bytes(data)
    assert message in read_in_a_process(path)


@measured
def test_what_is_written_out_is_bounded(tmp_path):
    path = tmp_path / "views.pt"
    path.write_bytes(views(40, 2))
    assert "refused as too large" in read_in_a_process(path, VALUES)
    path.write_bytes(views(2, 3))
    assert "refused" not in read_in_a_process(path, VALUES)


@measured
def test_an_index_does_not_name_itself(tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    names = {f"{i:05}": path.name for i in range(9_000)}
    path.write_text(json.dumps({"weight_map": names}))
    assert "got an index" in read_in_a_process(path)


@measured
def test_a_dict_of_many_keys_is_read(tmp_path):
    """The vocabulary of a tokenizer, both ways, and an optimizer's ids."""
    words = {str(i): i for i in range(150_000)}
    ids = {140_000_000_000_000 + 16 * i: i for i in range(3_000)}
    path = tmp_path / "large.pt"
    path.write_bytes(pickle.dumps([words, {i: w for w, i in words.items()}, ids]))
    assert "refused" not in read_in_a_process(path)


@measured
def test_a_million_tensors_are_no_million_squared(tmp_path):
    entry = '"n%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    text = ("{" + ",".join(entry % i for i in range(100_000)) + "}").encode()
    path = tmp_path / "many.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert "refused" not in read_in_a_process(path)
