"""Escape control characters in text that reaches a terminal.

Names, metadata and paths come from files. What `repr` would escape (control characters
of both blocks, escape sequences, text direction, lone surrogates) is escaped on its way
to stdout and stderr; only the line ends of the program itself stay line ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any


def shown(text: object) -> str:
    """The text on one line; what cannot be printed is escaped as `repr` does it."""
    line = str(text)
    return line if line.isprintable() else "".join(map(_escaped, line))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


class Filtered:
    """A text stream that escapes control characters, line by line.

    behind: the stream itself, for output that carries colours of our own.
    """

    def __init__(self, behind: Any):
        self.behind = behind
        self.encoding = getattr(behind, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        safe = "\n".join(map(shown, text.split("\n")))
        data = safe.encode(self.encoding, "backslashreplace")
        self.behind.write(data.decode(self.encoding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextmanager
def filtered() -> Iterator[None]:
    """stdout and stderr are Filtered inside."""
    out: Any = Filtered(sys.stdout)
    err: Any = Filtered(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        yield


def unfiltered(stream: Any) -> Any:
    """The stream that takes colours: for text that went through `shown`."""
    return stream.behind if isinstance(stream, Filtered) else stream
