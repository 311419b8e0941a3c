"""Parse NAME=VALUE options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from burnish.codegen.errors import UsageError


def inputs(command: argparse.ArgumentParser) -> None:
    """Add --dim and --input, for commands that run a model."""
    command.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="the size of an open dimension; may be repeated",
    )
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE.npy",
        help="an input's values instead of random ones; may be repeated",
    )


def sizes(texts: Iterable[str]) -> dict[str, int]:
    """The sizes given with --dim."""
    pairs = _pairs("--dim", texts)
    for name, value in pairs:
        if not value.isdecimal():
            raise UsageError(f"--dim {name}: expected a whole number, got {value!r}")
    return {name: int(value) for name, value in pairs}


def choices(texts: Iterable[str]) -> dict[str, list[int]]:
    """The sizes given with --dim where it may have several: batch=1,8."""
    found: dict[str, list[int]] = {}
    for name, value in _pairs("--dim", texts):
        for part in value.split(","):
            if not part.isdecimal():
                raise UsageError(
                    f"--dim {name}: expected whole numbers such as 1,8, got {value!r}"
                )
            found.setdefault(name, []).append(int(part))
    return found


def files(texts: Iterable[str]) -> dict[str, Path]:
    """The files given with --input."""
    return {name: Path(value) for name, value in _pairs("--input", texts)}


def _pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            raise UsageError(f"{option}: expected NAME=VALUE, got {text!r}")
        pairs.append((name, value))
    return pairs
