"""Folders that hold one folder a class."""

from __future__ import annotations

import os

from burnish.errors import RecordError


def labelled_files(
    root: str | os.PathLike[str], endings: tuple[str, ...], skip: str = "."
) -> tuple[list[tuple[str, int]], list[str]]:
    """(path, label) for every file below `root`, and the classes in order of name.

    The folders directly in `root` are the classes, but for those that start with
    `skip`; files may be in subfolders. Raises RecordError for a class without files.
    """
    where = os.fspath(root)
    if not os.path.isdir(where):
        raise FileNotFoundError(f"{where}: expected a folder of classes, got none")
    classes = sorted(
        entry.name
        for entry in os.scandir(where)
        if entry.is_dir() and not entry.name.startswith((".", skip))
    )
    if not classes:
        raise RecordError(f"{where}: expected a folder for each class, got none")
    items = []
    for label, name in enumerate(classes):
        found = _below(os.path.join(where, name), endings)
        if not found:
            raise RecordError(
                f"{os.path.join(where, name)}: expected files that end in "
                f"{', '.join(endings)}, got none"
            )
        items += [(path, label) for path in found]
    return items, classes


def _below(folder: str, endings: tuple[str, ...]) -> list[str]:
    return sorted(
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(endings) and not name.startswith(".")
    )
