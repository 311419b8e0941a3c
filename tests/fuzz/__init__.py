"""Damaged and hostile files for every reader: `python -m tests.fuzz records 100000`.

A number is a file: a good one of which fields, bytes or subtrees were changed. Each
must be read or refused by a documented error, within ten times its size and 64 MiB of
memory and a second a megabyte, with nothing written outside of its folder and nothing
run.
`python -m tests.fuzz records 1 NUMBER` repeats one, with its traceback.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.harness import Subject

#: Modules of this package, each with a class `Files`.
NAMES = ("models", "weights", "records", "folders", "runs", "data", "sources")


def subject(name: str) -> Subject:
    """The subject of a name."""
    made: Subject = import_module(f"{__name__}.{name}").Files()
    return made
