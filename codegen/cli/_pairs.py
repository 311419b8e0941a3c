"""Parse NAME=VALUE options of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from burnish.codegen.errors import UsageError


def sizes(texts: Iterable[str]) -> dict[str, int]:
    """What --dim was given."""
    pairs = _pairs("--dim", texts)
    for name, value in pairs:
        if not value.isdecimal():
            raise UsageError(f"--dim {name}: expected a whole number, got {value!r}")
    return {name: int(value) for name, value in pairs}


def files(texts: Iterable[str]) -> dict[str, Path]:
    """What --input was given."""
    return {name: Path(value) for name, value in _pairs("--input", texts)}


def _pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            raise UsageError(f"{option}: expected NAME=VALUE, got {text!r}")
        pairs.append((name, value))
    return pairs
