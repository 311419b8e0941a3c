"""Tables from text files: CSV and JSON lines; errors name the line."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from burnish._files import jsontext
from burnish._files.shown import shown, words
from burnish.data.dataset import TableDataset
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]

_LONGEST = 200  # characters of the file's text in a message


def read_csv(
    path: Path,
    *,
    delimiter: str = ",",
    names: Sequence[str] | None = None,
    types: Mapping[str, Callable[[str], Any]] | None = None,
) -> TableDataset:
    """The rows of a CSV file (UTF-8) as dicts.

    names: of the columns, for files whose first line does not have them; types: what
    makes a column's text its values, such as `str` for numbers with leading zeros. A
    column without one is int64, float64 or text, the first that all its values are.
    Raises RecordError with the line of a row that does not fit.
    """
    where = os.fspath(path)
    rows = _rows(where, delimiter)
    if names is None:
        line, names = next(rows, (1, []))
        if not names or len(set(names)) != len(names):
            raise RecordError(
                f"{where}, line {line}: expected a line of different names, "
                f"got {shown(names, _LONGEST)}"
            )
    if types and (unknown := sorted(set(types) - set(names))):
        raise InputError(f"read_csv: expected columns {list(names)}, got {unknown[0]}")
    lines, values = [], []
    for line, row in rows:
        if len(row) != len(names):
            raise RecordError(
                f"{where}, line {line}: expected {len(names)} fields, "
                f"{shown(names, _LONGEST)}, got {len(row)}"
            )
        lines.append(line)
        values.append(row)
    columns = list(zip(*values, strict=True)) or [()] * len(names)
    return TableDataset(
        {
            name: _column(where, name, texts, lines, (types or {}).get(name))
            for name, texts in zip(names, columns, strict=True)
        }
    )


def _rows(where: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line it begins in, fields) for every row that is not empty."""
    with open(where, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        begin = 1
        try:
            for row in reader:
                if row:
                    yield begin, row
                begin = reader.line_num + 1
        except csv.Error as error:
            raise RecordError(
                f"{where}, line {begin}: expected a row of CSV, got damage: "
                f"{words(error)}"
            ) from None
        except UnicodeDecodeError as error:
            raise RecordError(
                f"{where}: expected UTF-8, got byte {error.object[error.start]:#04x} "
                f"near line {begin}"
            ) from None


def _column(
    where: str,
    name: str,
    texts: Sequence[str],
    lines: Sequence[int],
    make: Callable[[str], Any] | None,
) -> Any:
    if make is None:
        for dtype in (np.int64, np.float64):
            try:
                return np.array([*map(dtype, texts)], dtype)
            except (ValueError, OverflowError):
                continue
        return texts
    values = []
    for line, text in zip(lines, texts, strict=True):
        try:
            values.append(make(text))
        except Exception as error:
            kind = getattr(make, "__name__", repr(make))
            raise RecordError(
                f"{where}, line {line}, column {shown(name)}: expected {kind}, got "
                f"{shown(text)} ({words(error)})"
            ) from None
    return values


def read_json_lines(path: Path, limit: int | None = None) -> list[Any]:
    """The values of a file that has one JSON value a line; empty lines are passed over.

    limit: bytes of memory that a file which is trusted may take, by default some ten
    times its own. Raises RecordError with the line that is not JSON.
    """
    return [value for _, value in jsontext.read_lines(path, limit)]
