"""Weights: safetensors and pickles of PyTorch's archives, pickle opcodes, bombs."""

from __future__ import annotations

import codecs
import io
import random
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (imported here, so that reading need not)
import numpy as np

from burnish import serialize
from burnish.errors import RecordError
from burnish.serialize import open_weights
from burnish.serialize.pytorch.machine import _ACTIONS
from burnish.serialize.pytorch.stream import LITERALS
from tests.fuzz.changes import changed_bytes
from tests.fuzz.harness import Files as Held

SAMPLES = Path(__file__).parents[1] / "runtime" / "serialize" / "samples"
#: Audit events of which reading bytes has no need.
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


def seeds() -> list[bytes]:
    """Small good files of every kind."""
    found = [path.read_bytes() for path in sorted(SAMPLES.glob("*.pt"))]
    arrays = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    arrays["flags"] = np.array([True, False])
    return [*found, serialize.to_bytes(arrays, {"format": "pt"})]


def program(rng: random.Random) -> bytes:
    """A pickle of random opcodes, with operands that often make sense."""
    parts = [b"\x80\x02"]
    for _ in range(rng.randint(1, 60)):
        code = rng.choice(OPCODES)
        parts.append(bytes([code]) + operand(code, rng))
    return b"".join(parts) + b"."


def operand(code: int, rng: random.Random) -> bytes:
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


def bomb(rng: random.Random) -> bytes:
    begin, again = rng.choice(BOMBS)
    many = begin + again * rng.choice((10, 1000, 5000))
    return b"\x80\x02" + many + rng.choice((b".", b"", b"l.", b"t.", b"u.", b"d."))


def rezipped(
    data: bytes, rng: random.Random, pickle: Callable[[bytes], bytes]
) -> bytes:
    """The archive with another data.pkl, checksums in order."""
    out = io.BytesIO()
    how = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", how) as new,
    ):
        for name in old.namelist():
            raw = old.read(name)
            raw = pickle(raw) if name.endswith("data.pkl") else raw
            new.writestr(zipfile.ZipInfo(name), raw, how)  # which has no time
    return out.getvalue()


def zip_bomb(rng: random.Random) -> bytes:
    out = io.BytesIO()
    size = rng.choice((10_000, 10_000_000))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        tensor = (
            b"ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\n"
        )
        tensor += b"U\x010U\x03cpuJ" + struct.pack("<i", size // 4) + b"tQK\x00J"
        tensor += struct.pack("<i", size // 4) + b"\x85K\x01\x85\x89}tR."
        data = b"\x80\x02" + tensor + bytes(rng.choice((0, size)))
        for name, raw in (("a/data.pkl", data), ("a/data/0", bytes(size))):
            new.writestr(zipfile.ZipInfo(name), raw, zipfile.ZIP_DEFLATED)
    return out.getvalue()


class Files:
    """One file of weights."""

    def seeds(self) -> list[Any]:
        for name in ("raw-unicode-escape", "utf-16-le", "utf-16-be", "utf-32-le"):
            codecs.lookup(name)  # so that nothing is imported later
        return seeds()

    def case(self, rng: random.Random, seeds: list[Any]) -> Held:
        return {"weights.pt": case(rng, seeds)}

    def attempt(self, folder: Path, _out: Path) -> str:
        data = (folder / "weights.pt").read_bytes()
        with watching() as seen:
            went = [attempt(data, inert) for inert in (False, True)]
        assert not seen, seen
        return went[0]


def case(rng: random.Random, good: list[bytes]) -> bytes:
    kind = rng.random()
    if kind < 0.5:
        return changed_bytes(rng.choice(good), rng)
    zips = [data for data in good if data[:2] == b"PK"]
    if kind < 0.7:
        return rezipped(rng.choice(zips), rng, lambda raw: changed_bytes(raw, rng, 1))
    if kind < 0.85:
        made = program(rng)
    elif kind < 0.98:
        made = bomb(rng)
    else:
        return zip_bomb(rng)
    in_zip = rng.random() < 0.3
    return rezipped(rng.choice(zips), rng, lambda raw: made) if in_zip else made


_heard: list[list[Any]] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if _heard and event.startswith(FORBIDDEN):
        _heard[-1].append((event, args[:1]))


sys.addaudithook(_hear)


@contextmanager
def watching() -> Iterator[list[Any]]:
    """Audit events of the interpreter that a reader never needs."""
    _heard.append([])
    try:
        yield _heard[-1]
    finally:
        _heard.pop()


def attempt(data: bytes, inert: bool) -> str:
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


def tried(action: Callable[[], Any]) -> tuple[Any, str | None]:
    """The result and the message of a RecordError; one of them is None."""
    try:
        return action(), None
    except RecordError as error:
        message = str(error)
    assert "\n" not in message, message
    return None, message
