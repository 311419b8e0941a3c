"""Unified diffs of source files."""

from __future__ import annotations

import difflib
import hashlib
import re
from pathlib import Path

from burnish.codegen.signature import lines_ended

_EMBEDDED = re.compile(r'(?<=^WEIGHTS = """\n)[^"]*(?=""")', re.MULTILINE)


def difference(path: Path, text: str) -> str:
    """The diff from the file at `path`, or from nothing, to `text`; "" for none.

    Embedded weights are one line, their digest.
    """
    there = path.is_file()
    before = path.read_bytes().decode("utf-8", "replace") if there else ""
    return "".join(
        difflib.unified_diff(
            _lines(before),
            _lines(text),
            str(path) if there else "/dev/null",
            f"{path} (generated)",
        )
    )


def _lines(text: str) -> list[str]:
    short = _EMBEDDED.sub(_digest, lines_ended(text))
    if short and not short.endswith("\n"):
        short += "\n"
    return short.splitlines(keepends=True)


def _digest(found: re.Match[str]) -> str:
    size, digest = len(found[0]), hashlib.sha256(found[0].encode()).hexdigest()
    return f"({size} characters, sha256 {digest})\n"
