"""The base class of recorders; `recorders` lists them."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeAlias

from burnish._files.atomic import atomic_write
from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import BudgetError, RecordError
from burnish.nn import Module
from burnish.nn.core.fit import Report
from burnish.record import precision as precisions
from burnish.record.format import Content, Format
from burnish.record.precision import Precision, narrow, widen
from burnish.record.tree import NOTHING, put_together, take_apart
from burnish.serialize.read import map_file
from burnish.store import load as load_weights

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview

_VERSION = 1
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
_TOO_MUCH = (RecursionError, MemoryError, EOFError)


@dataclass(frozen=True)
class Recorder:
    """Writes states to files and reads them again, in one format.

    precision: "double" (float64), "full" (float32, integers of 4 bytes) or "half"
    (float16, integers of 2 bytes where they fit) in the file; loaded arrays have the
    types it had before. None changes nothing.

    Raises InputError for another precision.
    """

    precision: Precision | None = None

    format: ClassVar[Format]

    def __post_init__(self) -> None:
        precisions.check(self.precision)

    @property
    def suffix(self) -> str:
        """The suffix of its files' names: ".safetensors", ".json.gz"."""
        return self.format.suffix

    def path(self, path: str | os.PathLike[str]) -> Path:
        """The file's name; the suffix is added unless it is there."""
        text = os.fspath(path)
        return Path(text if text.endswith(self.suffix) else text + self.suffix)

    def record(self, item: Any, path: str | os.PathLike[str]) -> Path:
        """Write an item to a file, atomically; the path it got.

        item: a module, an optimizer, a schedule, or anything else with a `state_dict`;
        arrays, tensors, configurations and plain values; dicts and lists of all these.

        Raises RecordError for what cannot be recorded; a file that was there stays.
        """
        where = self.path(path)
        with atomic_write(where) as out:
            self._write(out, item, str(where))
        return where

    def to_bytes(self, item: Any) -> bytes:
        """The bytes that `record` writes."""
        out = io.BytesIO()
        self._write(out, item, f"{self.format.kind} bytes")
        return out.getvalue()

    def load(self, source: Source, limit: int | None = None) -> Any:
        """The content of a file or bytes: arrays by name, or their containers.

        Objects come back as the states they had, configurations as dicts, tuples as
        lists. Arrays have the types they were recorded with and may be read-only.

        limit: the bytes of memory that reading may take, for a file that is trusted; by
        default about eight times its size and 48 MiB, which holds all that is recorded
        here. Raises RecordError, with the path, when there is any damage, and
        BudgetError, which is one, when a file asks for more memory.
        """
        return self._read(*self._opened(source), limit)

    def load_into(
        self,
        item: Any,
        source: Source,
        strict: bool = True,
        limit: int | None = None,
    ) -> Report:
        """Give an item the state that a file or bytes hold, and say what was done.

        item: a module, or what else has `load_state_dict`. strict: names of a module's
        tensors must match exactly. limit: as `load` takes it. Raises RecordError with
        all that does not fit, before anything is changed.
        """
        data, where = self._opened(source)
        state = self._read(data, where, limit)
        if not isinstance(state, dict):
            raise RecordError(f"{where}: expected arrays by name, got {_kind(state)}")
        try:
            if isinstance(item, Module):
                return load_weights(
                    item, state, partial=not strict, contiguous_indices=False
                )
            return _go_on(item, state)
        except RecordError as error:
            raise RecordError(f"{where}: {error}") from None

    def _write(self, out: BinaryIO, item: Any, where: str) -> None:
        try:
            plain, arrays = take_apart(item)
            arrays, dtypes = narrow(arrays, self.precision)
            page: dict[str, Any] = {"version": _VERSION}
            if plain is not NOTHING:
                page["item"] = plain
            if dtypes:
                page["dtypes"] = dtypes
            self.format.write(out, Content(page, arrays))
        except RecordError as error:
            raise RecordError(f"{where}: {error}") from None

    def _opened(self, source: Source) -> tuple[memoryview, str]:
        if isinstance(source, bytes | bytearray | memoryview):
            data = memoryview(source).cast("B").toreadonly()
            return data, f"{self.format.kind} bytes"
        where = self.path(source)
        return memoryview(map_file(where)), str(where)

    def _read(self, data: memoryview, where: str, limit: int | None) -> Any:
        head = bytes(data[:64])
        if not self.format.begins(head):
            others = [
                kind.__name__
                for kind in Recorder.__subclasses__()
                if kind.format.begins(head)
            ]
            hint = f"; try {' or '.join(others)}" if others else ""
            raise RecordError(
                f"{where}: expected a record in {self.format.kind}, got {len(data)} "
                f"bytes that begin with {head[:8]!r}{hint}"
            )
        try:
            budget = Budget(len(data), where, limit, "pass limit=BYTES")
            page, arrays = self.format.read(data, budget)
            if page["version"] != _VERSION:
                raise RecordError(
                    f"expected a record of version {_VERSION}, got "
                    f"{shown(page['version'])}; a newer Burnish may read it"
                )
            arrays = widen(arrays, page.get("dtypes", {}), budget)
            return put_together(page.get("item", NOTHING), arrays)
        except BudgetError:
            raise
        except RecordError as error:
            text = str(error).removeprefix(f"{where}: ").replace("\n", " ")
            raise RecordError(f"{where}: {text:.300}") from None
        except (*_DAMAGE, *_TOO_MUCH) as error:
            message = error.args[0] if error.args else ""
            problem = f"{type(error).__name__}: {shown(message, 200)}"
            raise RecordError(
                f"{where}: expected a record in {self.format.kind}: {problem:.200}"
            ) from None


def _go_on(item: Any, state: dict[str, Any]) -> Report:
    """Give an optimizer or its like a state; after an error it has the one it had."""
    before = item.state_dict()
    try:
        item.load_state_dict(state)
    except (*_DAMAGE, *_TOO_MUCH) as error:
        item.load_state_dict(before)
        if isinstance(error, RecordError):
            raise
        text = f"{_kind(item)} cannot go on from {list(state)[:5]}: {error}"
        raise RecordError(text) from None
    report = Report(_kind(item))
    report.applied = list(state)
    return report


def _kind(value: Any) -> str:
    return type(value).__name__
