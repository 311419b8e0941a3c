"""Damaged and hostile weights files: `python -m tests.runtime.serialize.fuzz 100000`.

Every file must give tensors or one RecordError: no other exception, nothing imported,
opened or executed, no more than SECONDS, and no more memory than TIMES its size and 64
MiB. Prints the number of each file that did not.
"""

from __future__ import annotations

import io
import random
import struct
import sys
import time
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path

import ml_dtypes  # noqa: F401  (imported here, so that reading need not)
import numpy as np

from burnish import serialize
from burnish.errors import RecordError
from burnish.serialize import open_weights
from burnish.serialize.pytorch.machine import _ACTIONS
from burnish.serialize.pytorch.stream import LITERALS

SECONDS, TIMES, FLOOR = 5.0, 10, 64 << 20
SAMPLES = Path(__file__).parent / "samples"
FORBIDDEN = (
    "import",
    "exec",
    "open",
    "os.",
    "subprocess",
    "socket",
    "ctypes",
    "shutil",
)
OPCODES = [*LITERALS, *_ACTIONS, ord(".")]
NAMES = [
    b"torch._utils\n_rebuild_tensor_v2\n",
    b"torch._utils\n_rebuild_tensor_v3\n",
    b"torch._utils\n_rebuild_qtensor\n",
    b"torch._utils\n_rebuild_sparse_tensor\n",
    b"torch._utils\n_rebuild_parameter\n",
    b"torch._tensor\n_rebuild_from_type_v2\n",
    b"torch\nFloatStorage\n",
    b"torch.storage\nUntypedStorage\n",
    b"torch\nfloat32\n",
    b"torch\nSize\n",
    b"collections\nOrderedDict\n",
    b"collections\ndefaultdict\n",
    b"numpy\ndtype\n",
    b"numpy\nndarray\n",
    b"numpy.core.multiarray\n_reconstruct\n",
    b"numpy.core.multiarray\nscalar\n",
    b"_codecs\nencode\n",
    b"builtins\nset\n",
    b"builtins\nbytearray\n",
    b"builtins\nrange\n",
    b"builtins\neval\n",
    b"os\nsystem\n",
    b"posix\nsystem\n",
    b"__main__\nNet\n",
]


def seeds():
    """Small good files of every kind."""
    found = [path.read_bytes() for path in sorted(SAMPLES.glob("*.pt"))]
    arrays = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    arrays["flags"] = np.array([True, False])
    return [*found, serialize.to_bytes(arrays, {"format": "pt"})]


def flipped(data, rng):
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        made[rng.randrange(len(made))] = rng.choice(
            (0, 1, 127, 128, 255, rng.randrange(256))
        )
    return bytes(made)


def cut(data, rng):
    return data[: rng.randrange(len(data))]


def moved(data, rng):
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    at = rng.randrange(len(data))
    return data[:at] + data[a:b] + data[at + rng.choice((0, b - a)) :]


def numbers(data, rng):
    """An extreme integer somewhere: sizes, offsets, counts, lengths."""
    width = rng.choice((2, 4, 8))
    value = rng.choice((0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1))
    at = rng.randrange(len(data))
    raw = (value % 256**width).to_bytes(width, "little")
    return data[:at] + raw + data[at + width :]


def program(rng):
    """A pickle of random opcodes, with operands that often make sense."""
    parts = [b"\x80\x02"]
    for _ in range(rng.randint(1, 60)):
        code = rng.choice(OPCODES)
        parts.append(bytes([code]) + operand(code, rng))
    return b"".join(parts) + b"."


def operand(code, rng):
    op = chr(code)
    if op in "ci":
        return rng.choice(NAMES)
    if op in "hqKU\x8c\x8aC":
        return bytes([rng.randrange(4)]) + (b"abc" if op in "U\x8cC" else b"")
    if op in "jrJXTB\x8b":
        return struct.pack("<I", rng.choice((0, 1, 2, 3, 1000, 2**31))) + b"abc"
    if op in "gpILFSVP":
        return rng.choice((b"0\n", b"1\n", b"'a'\n", b"1.5\n", b"9" * 30 + b"\n"))
    return b""


#: A fragment, and what is repeated: each a way to ask for much with little.
BOMBS = [
    (b"", b"]"),
    (b"", b"}"),
    (b"", b"("),
    (b"N", b"2"),
    (b"", b"\x8f"),
    (b"]", b"\x85"),
    (b"(", b"K\x01t("),
    (b"", b"(]t"),
    (b"]q\x00", b"h\x00h\x00\x86q\x00"),
    (b"]q\x00", b"(h\x00h\x00h\x00lq\x00"),
    (b"}", b"]2s"),
    (b"]", b"]a"),
    (b"", b"\x8a\x09" + b"\xff" * 9),
    (b"ccollections\nOrderedDict\nq\x00", b"h\x00)R"),
    (b"cbuiltins\nset\nq\x00", b"h\x00)R"),
    (b"c__main__\nA\nq\x00", b"h\x00)R"),
    (
        b"c_codecs\nencode\nq\x00X\x00\x10\x00\x00" + b"a" * 4096 + b"\x85q\x01",
        b"h\x00h\x01R",
    ),
    (b"cbuiltins\nlist\nq\x00(" + b"N" * 500 + b"l\x85q\x01", b"h\x00h\x01R"),
    (b"N", b"r\xff\x00\x00\x00"),
    (b"N", b"r\x00\xff\xff\x00"),
    (b"", b"I" + b"9" * 2000 + b"\n"),
    (b"}q\x00", b"X\x01\x00\x00\x00a}q\x00s"),
    (b"", b"\x96" + bytes(8)),
    (b"", b"g0\n"),
    (b"Nq\x00", b"g0\n"),
    (b"X\x00\x10\x00\x00" + b"k" * 4096 + b"q\x01}", b"h\x01]s"),
]


def bomb(rng):
    begin, again = rng.choice(BOMBS)
    many = begin + again * rng.choice((10, 1000, 5000))
    return b"\x80\x02" + many + rng.choice((b".", b"", b"l.", b"t.", b"u.", b"d."))


def rezipped(data, rng, pickle):
    """The archive with another data.pkl, checksums in order."""
    out = io.BytesIO()
    how = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", how) as new,
    ):
        for name in old.namelist():
            raw = old.read(name)
            new.writestr(name, pickle(raw) if name.endswith("data.pkl") else raw)
    return out.getvalue()


def zip_bomb(rng):
    out = io.BytesIO()
    size = rng.choice((10_000, 10_000_000))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        tensor = (
            b"ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n"
        )
        tensor += b"U\x010U\x03cpuJ" + struct.pack("<i", size // 4) + b"tQK\x00J"
        tensor += struct.pack("<i", size // 4) + b"\x85K\x01\x85\x89}tR."
        new.writestr("a/data.pkl", b"\x80\x02" + tensor + bytes(rng.choice((0, size))))
        new.writestr("a/data/0", bytes(size))
    return out.getvalue()


CHANGES = (flipped, flipped, cut, moved, numbers, numbers)


def case(seed, good):
    """The file of this number; the same number gives the same file."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.5:
        data = rng.choice(good)
        for _ in range(rng.randint(1, 3)):
            data = rng.choice(CHANGES)(data, rng) or b"\x80"
        return data
    zips = [data for data in good if data[:2] == b"PK"]
    if kind < 0.7:
        change = rng.choice(CHANGES)
        return rezipped(rng.choice(zips), rng, lambda raw: change(raw, rng))
    if kind < 0.85:
        made = program(rng)
    elif kind < 0.98:
        made = bomb(rng)
    else:
        return zip_bomb(rng)
    return (
        rezipped(rng.choice(zips), rng, lambda raw: made)
        if rng.random() < 0.3
        else made
    )


class Watch:
    """What the interpreter was asked to do while a file was read."""

    def __init__(self):
        self.on = False
        self.seen = []
        sys.addaudithook(self.hear)

    def hear(self, event, args):
        if self.on and event.startswith(FORBIDDEN):
            self.seen.append((event, args[:1]))


def attempt(data, inert):
    """Whether all, a part or nothing was read; anything else is an exception."""
    weights, problem = tried(lambda: open_weights(data, inert))
    if problem:
        return "refused"
    refused = 0
    for tensor in weights.values():
        array, problem = tried(tensor.read)
        assert problem or array.shape == tensor.shape, tensor
        refused += bool(problem)
    return "read in part" if refused else "read"


def tried(action):
    """The result and the message of a RecordError; one of them is None."""
    try:
        return action(), None
    except RecordError as error:
        message = str(error)
    assert "\n" not in message, message
    return None, message


def examine(seed, good, watch):
    """How the file of this number went; a problem is an AssertionError."""
    data = case(seed, good)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    start, watch.on, watch.seen = time.process_time(), True, []
    try:
        went = attempt(data, inert=seed % 2 == 0)
    finally:
        watch.on = False
    seconds = time.process_time() - start
    used = tracemalloc.get_traced_memory()[1] - before
    assert not watch.seen, watch.seen
    assert seconds < SECONDS, f"{seconds:.1f} s of CPU for {len(data)} bytes"
    assert used < TIMES * len(data) + FLOOR, f"{used} bytes of memory for {len(data)}"
    return went, seconds, used, len(data)


def run(first, count):
    """Examine files; the number of problems."""
    good, watch, found = seeds(), Watch(), Counter()
    slowest = largest = problems = 0.0
    for data in good:
        attempt(data, True)  # so that nothing is imported later
    b"a".decode("raw-unicode-escape")
    tracemalloc.start()
    for seed in range(first, first + count):
        try:
            went, seconds, used, size = examine(seed, good, watch)
        except Exception as error:
            problems += 1
            print(
                f"file {seed}: {type(error).__name__}: {str(error)[:300]}", flush=True
            )
            continue
        found[went] += 1
        slowest = max(slowest, seconds)
        largest = max(largest, (used - FLOOR) / size)
    print(f"{count} files: {dict(found)}, {problems:.0f} problems")
    print(f"slowest {slowest:.2f} s, most memory {largest:.1f} times the file + 64 MiB")
    return int(problems)


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]] or [100_000]
    sys.exit(min(100, run(arguments[1] if len(arguments) > 1 else 0, arguments[0])))
