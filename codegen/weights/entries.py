"""Entries of the weights file, read from the model file one tensor at a time."""

from __future__ import annotations

import base64
import errno
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burnish import serialize
from burnish._files.atomic import atomic_write
from burnish.codegen.errors import UsageError
from burnish.codegen.program import Weight
from burnish.codegen.weights.streaming import blocks

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, total)."""

_COLUMNS = 88


@dataclass(frozen=True)
class Entry:
    """One tensor of the weights file; its values are read when they are written."""

    path: str
    dtype: str
    weight: Weight

    @property
    def trained(self) -> bool:
        return self.weight.trained

    @property
    def count(self) -> int:
        return int(np.prod(self.weight.shape, dtype=np.int64))

    @property
    def size(self) -> int:
        """Bytes."""
        return self.count * _dtype(self.dtype).itemsize

    def blocks(self) -> Iterator[memoryview]:
        """The values as the file stores them, a piece at a time."""
        return blocks(self.weight.read(), _dtype(self.dtype))

    def read(self) -> np.ndarray:
        return self.weight.read().astype(_dtype(self.dtype), copy=False)


def entries(weights: Iterable[tuple[str, Weight]], half: bool) -> tuple[Entry, ...]:
    """The weights file's entries; half: floating-point numbers in half precision."""
    halved = ("float32", "float64") if half else ()
    return tuple(
        Entry(path, "float16" if weight.dtype in halved else weight.dtype, weight)
        for path, weight in weights
    )


def _dtype(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def as_text(weights: Iterable[Entry], metadata: Mapping[str, str], seal: str) -> str:
    """The weights file as lines of base64, with its digest under the key `seal`."""
    state = {entry.path: entry.read() for entry in weights}
    data = serialize.to_bytes(state, metadata, seal=seal)
    return "\n".join(textwrap.wrap(base64.b64encode(data).decode(), _COLUMNS)) + "\n"


def write_files(
    folder: Path,
    name: str,
    text: str,
    weights: tuple[Entry, ...],
    progress: Progress,
    metadata: Mapping[str, str],
    seal: str,
) -> list[Path]:
    """`name.py`, and `name.safetensors` when there is metadata to write.

    progress: called with ("writing weights", done, total), in tensors. metadata: the
    weights file's, with its digest under the key `seal`.
    """

    def blocks_of(number: int, entry: Entry) -> Callable[[], Iterator[memoryview]]:
        def read() -> Iterator[memoryview]:
            progress("writing weights", number, len(weights))
            return entry.blocks()

        return read

    source, stored = folder / f"{name}.py", folder / f"{name}.safetensors"
    for path in (source, stored):  # else the first would be written without the other
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "Expected a file, got a folder", path)
    with package(folder), atomic_write(source) as out:
        out.write(text.encode())
        if metadata:
            serialize.write_stream(
                stored,
                [
                    (
                        entry.path,
                        _dtype(entry.dtype),
                        entry.weight.shape,
                        blocks_of(n, entry),
                    )
                    for n, entry in enumerate(weights)
                ],
                metadata,
                seal=seal,
            )
    return [source, stored] if metadata else [source]


@contextmanager
def package(folder: Path) -> Iterator[None]:
    """`folder`, a package where it is new: importable from a zipped wheel too.

    Folders that are there stay as they are; new ones are gone again after an error.
    Raises UsageError where a file of that name is.
    """
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UsageError(
                f"{folder}: expected a folder, or a name that is free, to write to; "
                f"this is a file, or is below one"
            ) from None
        for place in new:
            (place / "__init__.py").touch()
        yield
    except BaseException:
        for place in new:
            with suppress(OSError):  # never made, or another process writes there too
                (place / "__init__.py").unlink()
                place.rmdir()
        raise
