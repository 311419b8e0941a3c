"""Datasets in SQLite files: one table a split, one row an item."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from burnish._files.shown import words
from burnish.data.dataset import in_range, stack
from burnish.data.sources.cells import kind_of, packed, unpacked
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]
_AT_ONCE = 500  # rows of one query; SQLite binds at least 999 names
_KEPT = 256  # rows between two inserts


class SqliteDataset:
    """The rows of a table as dicts, or as tuples where a writer was given those.

    split: the table's name. Any table with row ids will do. Threads share one
    connection; every process opens its own. Raises FileNotFoundError, InputError for a
    table that is not there and RecordError for a damaged file.
    """

    def __init__(self, path: Path, split: str = "train"):
        self.path = os.path.abspath(path)
        self.split = split
        self._connection: Any = None
        self._finalizer: Any = None
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"{self.path}: expected a SQLite file, got nothing")
        self._reset()
        tables = self._ask("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = sorted(name for (name,) in tables)
        if split not in names:
            raise InputError(
                f"{self.path}: expected a table out of {names}, got {split!r}"
            )
        columns = self._ask(f"PRAGMA table_info({_quoted(split)})")
        self._kinds = {name: kind.upper() for _, name, kind, *_ in columns}
        ids = self._ask(f"SELECT rowid FROM {_quoted(split)} ORDER BY rowid")
        self._ids = np.fromiter((row for (row,) in ids), np.int64, len(ids))
        self._tuples = list(self._kinds) == [str(i) for i in range(len(self._kinds))]

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: int, /) -> Any:
        return self._items(np.array([in_range(index, self)]))[0]

    def get_batch(self, indices: np.ndarray) -> Any:
        """The items at `indices`, stacked column by column."""
        return stack(self._items(indices))

    def close(self) -> None:
        """Close the file; the next item opens it again."""
        if self._connection is not None:
            self._finalizer()
            self._connection = None

    def _items(self, indices: np.ndarray) -> list[Any]:
        wanted = self._ids[indices].tolist()
        found: dict[int, Any] = {}
        for begin in range(0, len(wanted), _AT_ONCE):
            some = wanted[begin : begin + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            query = (
                f"SELECT rowid, * FROM {_quoted(self.split)} WHERE rowid IN ({marks})"
            )
            found |= {row[0]: row for row in self._ask(query, some)}
        if lost := [row for row in wanted if row not in found]:
            raise RecordError(
                f"{self.path}, row {lost[0]} of {self.split!r}: expected it in the "
                "table, whose index lists it, got nothing; the file is damaged"
            )
        return [self._item(found[row]) for row in wanted]

    def _item(self, row: Any) -> Any:
        values = []
        for (name, kind), stored in zip(self._kinds.items(), row[1:], strict=True):
            try:
                values.append(unpacked(stored, kind))
            except (ValueError, TypeError, EOFError) as error:
                raise RecordError(
                    f"{self.path}, row {row[0]} of {self.split!r}: expected "
                    f"{words(kind)} in {name!r}, got damage: {words(error)}"
                ) from None
        if self._tuples:
            return tuple(values) if len(values) > 1 else values[0]
        return dict(zip(self._kinds, values, strict=True))

    def _ask(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        import sqlite3

        if self._process != os.getpid():  # a forked connection is the parent's
            self._reset()
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = sqlite3.connect(
                        f"file:{_escaped(self.path)}?mode=ro",
                        uri=True,
                        check_same_thread=False,
                    )
                    self._finalizer = weakref.finalize(self, self._connection.close)
                return self._connection.execute(query, tuple(values)).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise RecordError(
                    f"{self.path}: expected a SQLite file that can be read, got: "
                    f"{words(error)}"
                ) from None

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._connection = None

    def __getstate__(self) -> dict[str, Any]:
        own = {"_lock", "_connection", "_finalizer"}
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset()


class SqliteWriter:
    """Writes items into a new SQLite file, row by row; several threads may.

    The first item of a split says the columns: those of a dict by name, those of a
    tuple by number, else one. Their kinds are whole numbers, floats, text, bytes,
    booleans, arrays (dtype and shape are kept) and JSON (lists, dicts). The file
    appears at `path` when the `with` block ends without an error. Raises InputError for
    an item unlike the first, and FileExistsError unless `overwrite`.
    """

    def __init__(self, path: Path, *, overwrite: bool = False):
        self.path = os.path.abspath(path)
        if os.path.exists(self.path) and not overwrite:
            raise FileExistsError(
                f"{self.path}: expected no file, got one; overwrite=True replaces it"
            )
        self._temporary = f"{self.path}.{os.urandom(6).hex()}.tmp"
        self._lock = threading.Lock()
        self._kinds: dict[str, dict[str, str]] = {}
        self._rows: dict[str, list[tuple[Any, ...]]] = {}
        self._counts: dict[str, int] = {}
        self._connection: Any = None

    def write(self, item: Any, split: str = "train") -> None:
        """Add an item to a split, which is made with its first one."""
        if self._connection is None:
            raise InputError("SqliteWriter: expected to be in its `with` block")
        fields = _fields(item)
        with self._lock:
            count = self._counts.get(split, 0) + 1
            if split not in self._kinds:
                self._create(split, fields)
            kinds = self._kinds[split]
            if fields.keys() != kinds.keys():
                raise InputError(
                    f"SqliteWriter, row {count} of {split!r}: expected columns "
                    f"{list(kinds)}, got {list(fields)}"
                )
            self._rows[split].append(
                tuple(
                    _cell(fields[name], kind, f"row {count} of {split!r}, {name!r}")
                    for name, kind in kinds.items()
                )
            )
            self._counts[split] = count
            if len(self._rows[split]) >= _KEPT:
                self._flush(split)

    def _create(self, split: str, fields: dict[str, Any]) -> None:
        kinds = {
            name: _cell(value, None, f"row 1 of {split!r}, {name!r}")
            for name, value in fields.items()
        }
        columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in kinds.items())
        self._connection.execute(f"CREATE TABLE {_quoted(split)} ({columns})")
        self._kinds[split], self._rows[split] = kinds, []

    def _flush(self, split: str) -> None:
        marks = ", ".join("?" * len(self._kinds[split]))
        query = f"INSERT INTO {_quoted(split)} VALUES ({marks})"
        self._connection.executemany(query, self._rows[split])
        self._rows[split].clear()

    def __enter__(self) -> SqliteWriter:
        import sqlite3

        self._connection = sqlite3.connect(self._temporary, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = OFF")  # whole or not at all
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            if kind is None:
                for split in self._rows:
                    self._flush(split)
                self._connection.commit()
            self._connection.close()
            if kind is None:
                os.replace(self._temporary, self.path)
        finally:
            self._connection.close()
            self._connection = None
            if os.path.exists(self._temporary):
                os.unlink(self._temporary)


def _fields(item: Any) -> dict[str, Any]:
    if isinstance(item, dict):
        return item
    values = item if isinstance(item, tuple) else (item,)
    return {str(place): value for place, value in enumerate(values)}


def _cell(value: Any, kind: str | None, where: str) -> Any:
    """The stored value, or the kind of the column when that is not known yet."""
    try:
        return kind_of(value) if kind is None else packed(value, kind)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(f"SqliteWriter, {where}: {error}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escaped(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
