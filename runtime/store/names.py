"""Rename a file's tensors to a module's: regular expressions, indices without gaps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from burnish.errors import InputError, RecordError

Renaming: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
"""Regular expressions and what takes the place of a match (`re.sub`), in order."""


def renamer(renaming: Renaming) -> Any:
    r"""The function that applies every (pattern, replacement), one after another.

    Groups are `\1` or `\g<name>`. Raises InputError for a pattern that is none.
    """
    pairs = list(renaming.items() if isinstance(renaming, Mapping) else renaming)
    try:
        compiled = [(re.compile(pattern), text) for pattern, text in pairs]
    except (re.error, TypeError, ValueError) as error:
        raise InputError(
            f"rename: expected (regular expression, replacement) pairs: {error}"
        ) from None

    def rename(name: str) -> str:
        for pattern, text in compiled:
            try:
                name = pattern.sub(text, name)
            except (re.error, IndexError) as error:
                raise InputError(f"rename: replacement {text!r}: {error}") from None
        return name

    return rename


def unique(names: Iterable[tuple[str, str]], where: str) -> dict[str, str]:
    """new -> old names. Raises RecordError when two old ones get one new one."""
    found: dict[str, str] = {}
    for old, new in names:
        if new in found:
            raise RecordError(
                f"{where}: both {found[new]!r} and {old!r} would be called {new!r}; "
                f"rename them apart, or leave one out"
            )
        found[new] = old
    return found


def contiguous(names: Iterable[str]) -> dict[str, str]:
    """Each name with its indices counted from 0: fc.0, fc.2, fc.4 -> fc.0, fc.1, fc.2.

    The order stays. PyTorch's Sequential counts layers without weights too.
    """
    parts = {name: name.split(".") for name in names}
    found: dict[tuple[str, ...], set[int]] = {}
    for split in parts.values():
        for at, part in enumerate(split):
            if part.isdecimal():
                found.setdefault(tuple(split[:at]), set()).add(int(part))
    rank = {
        (above, index): place
        for above, indices in found.items()
        for place, index in enumerate(sorted(indices))
    }

    def counted(split: list[str]) -> str:
        return ".".join(
            str(rank[tuple(split[:at]), int(part)]) if part.isdecimal() else part
            for at, part in enumerate(split)
        )

    return {name: counted(split) for name, split in parts.items()}
