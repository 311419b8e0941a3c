"""Files to Graph; the format is detected by content, not by suffix.

In: a path. Out: `Source`: a normal Graph, its path, digest and opset.
Invariant: tensors stay in the file until they are used; nothing outside of the model's
folder is read; a broken file is a ReadError that names the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from burnish.codegen.errors import ConversionError, Explain, ReadError, silent
from burnish.codegen.readers import onnx
from burnish.codegen.readers.detect import open_file
from burnish.codegen.readers.microsoft.shared.searches import parts_of
from burnish.codegen.readers.sizes import shapes
from burnish.codegen.readers.tensors import FileTensor
from burnish.codegen.search import identity
from burnish.errors import BurnishError

__all__ = [
    "FileTensor",
    "Source",
    "in_files",
    "parts_of",
    "read",
    "valid_or_refused",
]


@dataclass(frozen=True)
class Source:
    """A model as it was read, with the reader's notes.

    `model` is normal: functions inlined, nodes sorted, names unique, constants and
    subgraph initializers lifted to the main graph's initializers, opset 16 or newer.
    """

    model: ir.Model
    notes: tuple[str, ...]
    path: Path
    sha256: str
    opset: int  #: as the file declares it, before any upgrade
    files: tuple[Path, ...]  #: all that it was read from, `path` first


def read(path: str | Path, *, explain: Explain | None = None) -> Source:
    """Read a model file; weights stay in the file until they are used."""
    path = Path(path)
    file = open_file(path)
    notes: list[str] = []
    listen = explain or silent

    def note(line: str) -> None:
        notes.append(line)
        listen(line)

    model, opset = onnx.load(file, note)
    files = dict.fromkeys((path, *(t.file.path for _, t in in_files(model))))
    return Source(model, tuple(notes), path, identity(path), opset, tuple(files))


def in_files(model: ir.Model) -> Iterator[tuple[ir.Value, FileTensor]]:
    """Weights whose values are still in a file."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, FileTensor):
                yield value, value.const_value


@contextmanager
def valid_or_refused(path: Path) -> Iterator[None]:
    """Blame the file for an unexpected error inside, if the file is invalid.

    ONNX's checker and its strict inference decide; an error on a valid model is a bug
    and is raised unchanged.
    """
    try:
        yield
    except (ConversionError, BurnishError, OSError, ModuleNotFoundError):
        raise
    except Exception as error:
        reason = shapes.complaint(read(path).model)
        if not reason:
            raise
        where = ", ".join((str(path), *getattr(error, "__notes__", ())[:1]))
        raise ReadError(
            f"{where}: expected a valid ONNX model, ONNX's checker says: {reason}; "
            "export it again"
        ) from error
