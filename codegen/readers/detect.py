"""Detect the format of a file by its content."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import NamedTuple

from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish.codegen.errors import ReadError
from burnish.codegen.readers.tensors import MappedFile
from burnish.codegen.readers.wire import BYTES, VARINT, Buffer, WireError, fields
from burnish.errors import RecordError

READ = (
    "graphs are read from ONNX files (binary protobuf), weights alone from PyTorch "
    "and safetensors files"
)

#: ModelProto's fields and their wire types.
_MODEL = {1: VARINT, 5: VARINT} | dict.fromkeys(
    (2, 3, 4, 6, 7, 8, 14, 20, 25, 26), BYTES
)
_GRAPH = 7


class Kind(NamedTuple):
    """A format, and what to do about it; ONNX needs no advice."""

    name: str
    advice: str = ""


_EXPORT = f"{READ}: export it with torch.onnx.export"
_MAGIC = (
    (b"PK\x03\x04", Kind("a zip archive (PyTorch .pt/.pth, or .npz/.keras)", _EXPORT)),
    (b"\x89HDF\r\n\x1a\n", Kind("an HDF5 file (Keras .h5)", READ)),
    (b"GGUF", Kind("a GGUF file", READ)),
    (b"\x93NUMPY", Kind("a NumPy array", READ)),
    (b"\x1f\x8b", Kind("a gzip archive", "unpack it with gunzip first")),
    (
        b"version https://git-lfs",
        Kind("a Git LFS pointer, not the model", "run `git lfs pull` first"),
    ),
    (b"<!DOCTYPE", Kind("a web page", "download the file itself")),
    (b"<html", Kind("a web page", "download the file itself")),
)


def open_file(path: Path) -> MappedFile:
    """The memory-mapped file; ReadError with the detected format if it is not ONNX."""
    file = _mapped(path)
    kind = recognise(file.data)
    if kind.advice:
        raise ReadError(
            f"{path}: expected an ONNX model, got {kind.name}; {kind.advice}"
        )
    return file


def _mapped(path: Path) -> MappedFile:
    try:
        if path.is_dir():
            advice = "name the file inside it"
            if (path / "config.json").is_file():
                advice = (
                    "`burnish generate` and `burnish inspect` read one with "
                    "config.json; compare its numbers with transformers' own model"
                )
            raise ReadError(f"{path}: expected a model file, got a folder; {advice}")
        return MappedFile(path)
    except FileNotFoundError:
        raise ReadError(
            f"{path}: expected a model file, there is none; check the path"
        ) from None
    except OSError as error:
        raise ReadError(
            f"{path}: expected a readable model file, got {error.strerror or error}"
        ) from None


def recognise(data: Buffer) -> Kind:
    """The format of a file's bytes; advice is empty only for an ONNX model."""
    head = bytes(data[:512])
    if not head:
        return Kind("an empty file", "download or export it again")
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[4:8] == b"TFL3":
        return Kind("a TensorFlow Lite file", f"{READ}: convert it with tf2onnx")
    if _is_safetensors(data):
        return Kind("a safetensors file, which holds weights without a graph", READ)
    if head[0] == 0x80 and head[1] in range(2, 6):
        return Kind("a pickle (an old PyTorch checkpoint?)", _EXPORT)
    if _is_text(head):
        return _text(head)
    return _protobuf(data)


def _is_safetensors(data: Buffer) -> bool:
    size = int.from_bytes(data[:8], "little")
    if data[8:9] != b"{" or not 2 <= size <= min(len(data) - 8, 100_000_000):
        return False
    try:
        header = jsontext.parse(data[8 : 8 + size], Budget(len(data), "header"))
    except RecordError:
        return False
    return isinstance(header, dict)


def _is_text(head: bytes) -> bool:
    # the first bytes of a ModelProto, 08 0x, are control characters
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return all(byte >= 32 or byte in b"\t\n\r\f" for byte in head)


def _text(head: bytes) -> Kind:
    if b"ir_version" in head:
        return Kind(
            "a model in ONNX's text form",
            f"{READ}: load it with onnx.load(path, format=...) and onnx.save it",
        )
    return Kind("a text file", READ)


def _protobuf(data: Buffer) -> Kind:
    seen = set()
    try:
        for number, wire_type, *_ in fields(data, 0, len(data)):
            if _MODEL.get(number, wire_type) != wire_type:
                raise WireError(f"field {number} has wire type {wire_type}")
            seen.add(number)
    except WireError as error:
        if seen & {1, 2, 7}:
            return Kind(
                f"a damaged or truncated one of {len(data)} bytes ({error})",
                "download or export it again",
            )
        return Kind("a file of no known format", READ)
    if _GRAPH not in seen:
        return Kind(
            "a protobuf without a graph",
            f"{READ}: this is another kind of file or was cut off",
        )
    return Kind("an ONNX model")
