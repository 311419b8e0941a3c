"""Report a failed command: in words on stderr, with --json as an object on stdout.

{"error": {"command", "kind", "message", "notes", "exit_code"}}: kind is the exception's
class ("ReadError", "UsageError", "Interrupted", "InternalError"), message its first
line and the list below it, notes what became of other models and, of an internal error,
which model and versions met it.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from burnish import __version__
from burnish.codegen.errors import identity
from burnish.codegen.terminal import shown
from burnish.codegen.tools.console import emit, say

#: Exit codes.
FAILED, USAGE, INTERNAL, INTERRUPTED = 1, 2, 3, 130

#: Advice of the runtime's messages, from Python to commands.
_IN_PYTHON = {"open_weights(..., inert=True)": "burnish inspect --inert"}

_PACKAGES = ("numpy", "onnx", "onnx-ir", "onnxruntime", "cupy-cuda13x")


@dataclass(frozen=True)
class Failure:
    """The object of `--json`."""

    command: str
    kind: str
    message: str
    exit_code: int
    notes: tuple[str, ...] = ()


def report(failure: Failure, as_json: bool) -> int:
    """Say it; the exit code.

    Lines of a list, indented in the message, stay lines. Other line ends are escaped: a
    file's text begins no line of its own.
    """
    first, *rest = failure.message.split("\n  ")
    say(f"burnish {failure.command}: {first}".replace("burnish :", "burnish:"))
    for line in (*rest, *failure.notes):
        print(f"  {shown(line.strip())}", file=sys.stderr)
    if as_json:
        emit({"error": failure})
    return failure.exit_code


def expected(command: str, error: BaseException, message: str, code: int) -> Failure:
    """An error that was raised on purpose, or that the system met."""
    for python, words in _IN_PYTHON.items():
        message = message.replace(python, words)
    notes = tuple(getattr(error, "__notes__", ()))
    return Failure(command, type(error).__name__, message, code, notes)


def internal(command: str, error: BaseException, model: Path | None) -> Failure:
    """An error that Burnish should not have made."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    file = Path(place.filename)
    notes = [*getattr(error, "__notes__", ()), *([identity(model)] if model else ())]
    return Failure(
        command,
        "InternalError",
        f"an error of Burnish itself, not of yours: {type(error).__name__}: {error}",
        INTERNAL,
        (
            f"at {file.parent.name}/{file.name}, line {place.lineno}",
            *dict.fromkeys(notes),
            ", ".join(f"{name} {version}" for name, version in versions().items()),
            "--traceback shows where it came from; please report it with these lines, "
            "and with the model if you may share it",
        ),
    )


def versions() -> dict[str, str]:
    """Versions that decide the output: Burnish, Python, and installed packages."""
    found = {"burnish": __version__, "python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def show_traceback(error: BaseException) -> None:
    """The traceback on stderr, text of files escaped as everywhere."""
    for line in traceback.format_exception(error):
        print(line, end="", file=sys.stderr)
