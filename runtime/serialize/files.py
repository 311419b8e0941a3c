"""Open weights files of any format: detected by content, tensors are read lazily."""

from __future__ import annotations

import errno
import os
from typing import Any, TypeAlias

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish._files.inside import inside
from burnish._files.shown import shown
from burnish.errors import RecordError
from burnish.serialize import read
from burnish.serialize.header import MAX_HEADER
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.weights import Weights, flatten

Path: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = Path | bytes | bytearray | memoryview

#: What a folder is searched for, best first.
_IN_FOLDER = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
    "diffusion_pytorch_model.safetensors",
    "consolidated.00.pth",
)
_ENDINGS = (".index.json", ".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_OTHERS = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras .h5); save it as safetensors"),
    (b"GGUF", "a GGUF file; use the safetensors file it was made from"),
    (b"\x93NUMPY", "a NumPy array; read it with numpy.load"),
    (b"\x1f\x8b", "a gzip archive; unpack it with gunzip first"),
    (b"version https://git-lfs", "a Git LFS pointer; run `git lfs pull` first"),
    (b"<", "a web page; download the file itself"),
)


def open_weights(
    source: Source, inert: bool = False, limit: int | None = None
) -> Weights:
    """The tensors of a weights file by name, none of them read yet.

    source: a .safetensors file; a PyTorch file of any age (.pt, .pth, .bin, .ckpt); the
    index (.index.json) of one in shards; a folder with one of these; or a file's bytes.
    inert: read objects of unknown classes in a pickle as records that do nothing.
    limit: the bytes of memory that what is made of each file may take, for a file that
    is trusted; by default about eight times its size and 48 MiB.

    Files are mapped into memory, so opening reads names and shapes alone. Raises
    RecordError when the file is damaged or something else, and BudgetError, which is
    one, when it asks for more than that.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data = memoryview(source).cast("B").toreadonly()
        return _read(data, "weights", inert, limit)
    path = os.fspath(source)
    if os.path.isdir(path):
        path = _in_folder(path)
    try:
        data = memoryview(read.map_file(path))
    except FileNotFoundError:
        advice = "No such file to read weights from; model.save_file(path) writes one"
        raise FileNotFoundError(errno.ENOENT, advice, path) from None
    if _is_json(data):
        return _sharded(path, data, inert, limit)
    return _read(data, path, inert, limit)


def is_weights(path: Path) -> bool:
    """Whether a file (or a folder) looks like one for `open_weights`.

    Told by its first bytes, a folder by names; nothing is checked.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return any(name.endswith(_ENDINGS) for name in os.listdir(path))
    if path.endswith(".index.json"):
        return True
    with open(path, "rb") as file:
        head = file.read(512)
    pickled = head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5")
    safe = head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= MAX_HEADER
    return pickled or safe or head[:2] == b"PK" or head[257:262] == b"ustar"


def _read(data: memoryview, where: str, inert: bool, limit: int | None) -> Weights:
    budget = Budget(len(data), where, limit, "pass limit=BYTES")
    if _is_safetensors(data):
        head = read.lazy(data, budget)
        return Weights(head.tensors, where, "safetensors", metadata=head.metadata)
    from burnish.serialize import pytorch

    for magic, what in _OTHERS:
        if bytes(data[:32]).startswith(magic):
            raise RecordError(f"{where}: expected a weights file, got {what}")
    if not data:
        raise RecordError(
            f"{where}: expected a weights file, got an empty one; download or save it "
            f"again"
        )
    if not (bytes(data[:2]) == b"PK" or pytorch.is_tar(data) or _is_pickle(data)):
        raise RecordError(
            f"{where}: expected safetensors or a PyTorch file, got {len(data)} bytes "
            f"that begin with {bytes(data[:8])!r}"
        )
    tree, kind = pytorch.read(data, budget, inert)
    return Weights(flatten(tree, budget), where, kind, tree)


def _is_json(data: memoryview) -> bool:
    return bytes(data[:64]).lstrip()[:1] == b"{"


def _is_safetensors(data: memoryview) -> bool:
    """Also one that ends within its header, which says how long it would be."""
    size = int.from_bytes(data[:8], "little")
    return bytes(data[8:9]) == b"{" and size <= max(len(data), MAX_HEADER)


def _is_pickle(data: memoryview) -> bool:
    """Whether it begins as pickles do: with a protocol, or as text, with an opcode."""
    head = bytes(data[:2])
    return head[:1] == b"\x80" or (head[:1] or b"?") in b"(]})cLISVXFN"


def _in_folder(folder: str) -> str:
    present = sorted(os.listdir(folder))
    for name in _IN_FOLDER:
        if name in present:
            return os.path.join(folder, name)
    for ending in _ENDINGS:
        found = [name for name in present if name.endswith(ending)]
        if len(found) == 1:
            return os.path.join(folder, found[0])
        if found:
            raise RecordError(
                f"{folder}: expected one weights file, found {', '.join(found[:5])}; "
                f"name the one that is meant"
            )
    raise RecordError(
        f"{folder}: expected a weights file ({', '.join(_ENDINGS)}), found none"
    )


def _sharded(path: str, data: memoryview, inert: bool, limit: int | None) -> Weights:
    """All tensors that an index names; every file is opened once."""
    tensors: dict[str, LazyTensor] = {}
    shards: dict[str, Weights] = {}
    folder = os.path.dirname(path)
    for name, file in _weight_map(Budget(len(data), path, limit), data).items():
        if file not in shards:
            if file != os.path.basename(file) or file in ("", ".", ".."):
                raise RecordError(
                    f"{path}: expected a file beside it, got {shown(file)}"
                )
            place = inside(folder or ".", file, path)
            if not os.path.isfile(place):
                raise RecordError(
                    f"{path}: expected the shard {file} beside it, there is none; "
                    f"download all shards"
                )
            part = memoryview(read.map_file(place))
            if _is_json(part):
                raise RecordError(f"{path}: expected weights in {file}, got an index")
            shards[file] = _read(part, place, inert, limit)
        if name not in shards[file]:
            raise RecordError(
                f"{path}: expected {shown(name)} in {file}, it is not there"
            )
        tensors[name] = shards[file][name]
    kinds = dict.fromkeys(shard.kind for shard in shards.values())
    kind = f"{' and '.join(kinds)} in {len(shards)} shards"
    metadata = {k: v for shard in shards.values() for k, v in shard.metadata.items()}
    places = [os.path.join(folder, file) for file in shards]
    return Weights(tensors, path, kind, metadata=metadata, shards=places)


def _weight_map(budget: Budget, data: memoryview) -> dict[str, str]:
    page = jsontext.parse(data, budget)
    names: Any = page.get("weight_map") if isinstance(page, dict) else None
    if not isinstance(names, dict) or not all(
        isinstance(file, str) for file in names.values()
    ):
        raise RecordError(
            f"{budget.where}: expected an index of shards, JSON with a weight_map of "
            f"names to files"
        )
    return names


def read_pickle_data(
    source: Source, top_level_key: str | None = None, inert: bool = False
) -> Any:
    """A PyTorch file's content besides its tensors: dicts, numbers, text.

    Tensors are LazyTensor. top_level_key: only tensors below it. Raises
    RecordError when there is no such key.
    """
    weights = open_weights(source, inert)
    tree = weights.tree
    if top_level_key is None:
        return tree
    if not isinstance(tree, dict) or top_level_key not in tree:
        keys = list(tree) if isinstance(tree, dict) else []
        raise RecordError(
            f"{weights.where}: expected a top-level key {top_level_key!r}, "
            f"got {', '.join(map(shown, keys[:8])) or 'none'}"
        )
    return tree[top_level_key]
