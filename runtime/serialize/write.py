"""Writing: one tensor at a time, and the file appears when it is complete."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, TypeAlias

from burnish._files.atomic import atomic_write
from burnish.backend import Array
from burnish.errors import RecordError
from burnish.serialize.elements import code_of, encode
from burnish.serialize.header import layout
from burnish.serialize.seal import UNSEALED, Hashed

Path: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = Array | bytes | Iterable[bytes] | Callable[[], Any]
"""An array, bytes, chunks of bytes, or a function that returns one of these."""
Tensors: TypeAlias = Iterable[tuple[str, Any, Iterable[int], Source]]
"""(name, dtype or the format's name of one, shape, where the values come from)"""


def save_file(
    state: Mapping[str, Array], path: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays by name to a file, atomically: safetensors, or PyTorch's own.

    path: with the ending .pt, .pth, .bin or .ckpt it is a ZIP archive that torch.load
    reads, where one array under two names is stored once; it holds no metadata.

    Arrays may be NumPy's or CuPy's, in any memory order; the same ones give the same
    bytes. Raises RecordError for a dtype that the format has no name for.
    """
    if not is_pytorch_name(path):
        write_stream(path, _of_arrays(state), metadata)
        return
    if metadata:
        raise RecordError(
            f"{os.fspath(path)}: expected no metadata, a PyTorch file has no place for "
            f"it; write safetensors"
        )
    from burnish.serialize.pytorch import write

    with atomic_write(path) as out:
        write(out, state, os.fspath(path))


def is_pytorch_name(path: Path) -> bool:
    """Whether a file of this name is one of PyTorch's own, by its ending."""
    return os.fspath(path).lower().endswith((".pt", ".pth", ".bin", ".ckpt"))


def to_bytes(
    state: Mapping[str, Array],
    metadata: Mapping[str, str] | None = None,
    *,
    seal: str | None = None,
) -> bytes:
    """The bytes that `save_file` writes; seal: as for `write_stream`."""
    out = io.BytesIO()
    _sealed(out, _of_arrays(state), metadata, seal, "safetensors bytes")
    return out.getvalue()


def write_stream(
    path: Path,
    tensors: Tensors,
    metadata: Mapping[str, str] | None = None,
    *,
    seal: str | None = None,
) -> None:
    """Write tensors whose values are asked for one at a time, atomically.

    tensors: (name, dtype, shape, source). The header needs all names and shapes, so
    this is walked first; sources are asked in the order of the file and then dropped.
    seal: a key of the metadata that gets the file's digest; see `is_sealed`.
    """
    with atomic_write(path) as out:
        _sealed(out, tensors, metadata, seal, os.fspath(path))


def _sealed(
    out: BinaryIO,
    tensors: Tensors,
    metadata: Mapping[str, str] | None,
    seal: str | None,
    where: str,
) -> None:
    if seal is None:
        _write(out, tensors, metadata, where)
        return
    hashed = Hashed(out)
    _write(hashed, tensors, {**(metadata or {}), seal: UNSEALED}, where)
    out.seek(hashed.place(seal))
    out.write(hashed.hexdigest())


def _of_arrays(state: Mapping[str, Array]) -> Tensors:
    return [(name, array.dtype, array.shape, array) for name, array in state.items()]


def _write(
    out: BinaryIO | Hashed,
    tensors: Tensors,
    metadata: Mapping[str, str] | None,
    where: str,
) -> None:
    rows = []
    sources = {}
    for name, dtype, shape, source in tensors:
        rows.append((name, code_of(dtype, f"{where}: tensor {name!r}"), tuple(shape)))
        sources[name] = source
    head, entries = layout(rows, metadata, where)
    out.write(head)
    for name, entry in entries.items():
        here = f"{where}: tensor {name!r}"
        expected, written = entry.stop - entry.start, 0
        for chunk in _chunks(sources.pop(name), entry.dtype, here):
            written += out.write(chunk)
        if written != expected:
            raise RecordError(f"{here}: expected {expected} bytes, got {written}")


def _chunks(source: Any, code: str, where: str) -> Iterable[Any]:
    if callable(source):
        source = source()
    if isinstance(source, bytes | bytearray | memoryview):
        return (source,)
    if not hasattr(source, "dtype"):
        return source
    if code_of(source.dtype, where) != code:
        raise RecordError(f"{where}: expected elements of {code}, got {source.dtype}")
    return (encode(source, where),)
