"""SQLite column types of values, and conversions from and to them."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from burnish._files import jsontext, npy
from burnish._files.budget import Budget
from burnish.errors import InputError

KINDS = ("INTEGER", "REAL", "TEXT", "BLOB", "BOOLEAN", "ARRAY", "JSON")


def kind_of(value: Any) -> str:
    """The kind of column that holds `value`."""
    if isinstance(value, bool | np.bool_):
        return "BOOLEAN"
    if isinstance(value, int | np.integer):
        return "INTEGER"
    if isinstance(value, float | np.floating):
        return "REAL"
    if isinstance(value, str):
        return "TEXT"
    if isinstance(value, bytes | bytearray | memoryview):
        return "BLOB"
    if isinstance(value, np.ndarray):
        return "ARRAY"
    if isinstance(value, list | dict) or value is None:
        return "JSON"
    raise InputError(
        "expected a number, text, bytes, an array, a list, a dict or None, got "
        f"{type(value).__name__}"
    )


def packed(value: Any, kind: str) -> Any:
    """`value` as SQLite stores it in a column of `kind`; any column takes None.

    Arrays are stored with dtype and shape, as in NumPy's own files (.npy).
    """
    if value is None:
        return None
    came = kind_of(value)
    if came != kind and (came, kind) != ("INTEGER", "REAL"):
        raise InputError(f"expected {kind}, as in the first row, got {came}: {value!r}")
    if kind == "ARRAY":
        file = io.BytesIO()
        np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
        return file.getvalue()
    if kind == "JSON":
        return json.dumps(value)
    return value.item() if isinstance(value, np.generic) else value


def unpacked(stored: Any, kind: str) -> Any:
    """The value that was stored in a column of `kind`; ValueError for damage."""
    if stored is None:
        return None
    if kind in ("ARRAY", "JSON") and not isinstance(stored, str | bytes):
        raise ValueError(f"expected {kind}, got {type(stored).__name__}")
    if kind == "ARRAY":
        return npy.view(_bytes(stored), kind).copy()
    if kind == "JSON":
        return jsontext.parse(_bytes(stored), Budget(len(stored), kind))
    return bool(stored) if kind == "BOOLEAN" else stored


def _bytes(stored: str | bytes) -> bytes:
    return stored.encode() if isinstance(stored, str) else stored
