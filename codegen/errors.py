"""Errors of the generator: where, what was expected, what came, what to do.

ConversionError               base; the command prints the message and exits with 1
├── ReadError                 the file is missing, damaged, or no model at all
├── UnsupportedError          operators or opsets that have no import rule, all of them
│   └── AttributeNotHonouredError   an attribute whose value the rule does not implement
├── OwnershipError            a file would be replaced that is not ours
├── ExportError                 what an ONNX graph cannot hold, or has no operator for
├── VerifyError               the generated module cannot be compared, or disagrees
└── UsageError                the command was called wrongly; exits with 2
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from burnish.codegen.terminal import shown
from burnish.errors import BurnishError

#: Receives one line each time a step decides something the user may ask about.
Explain = Callable[[str], None]

WHY_NOT = "burnish.why_not"
"""A node's metadata: why the reader left it as it is."""

CALL = "burnish.call"
"""In `meta` of a node from a function: the name of the node that called it."""


def silent(_line: str) -> None:
    """An Explain that listens to nothing."""


class ConversionError(Exception):
    """Base of everything that the generator raises on purpose."""

    exit_code = 1


class ReadError(ConversionError):
    """A file that is missing, damaged, refused, or no model."""


class UnsupportedError(ConversionError):
    """Operators without an import rule: the whole list, never the first only.

    `missing` is a message, or maps each kind ("ai.onnx.Foo (opset 18)") to its nodes.
    """

    def __init__(self, missing: str | Mapping[str, Sequence[str]]) -> None:
        self.missing = {} if isinstance(missing, str) else dict(missing)
        super().__init__(missing if isinstance(missing, str) else _report(missing))


def _report(missing: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"  {shown(kind)}: {'node' if len(nodes) == 1 else 'nodes'} "
        + ", ".join(map(repr, nodes))
        for kind, nodes in sorted(missing.items())
    ]
    leave = spelled("allow_unknown=True", "--allow-unknown")
    head = (
        "expected operators and attributes with an import rule (declare yours with "
        f"@onnx_op and --rules, or leave methods to fill in with {leave}), these have "
        "none:"
    )
    return "\n".join([head, *lines])


class AttributeNotHonouredError(UnsupportedError):
    """An attribute whose value would change the result and is not implemented."""

    def __init__(
        self, node: str, operator: str, name: str, expected: object, got: object
    ) -> None:
        super().__init__(
            f"node {node!r} ({operator}): expected {name}={expected}, got {got}"
        )


class OwnershipError(ConversionError):
    """A file that is not replaced: it was edited, or Burnish did not write it.

    diff: whether `--diff` goes together with what was asked for.
    """

    def __init__(
        self, taken: Mapping[Path, str], mergeable: bool, diff: bool = True
    ) -> None:
        self.taken, self.mergeable = dict(taken), mergeable
        found = "; ".join(f"{path} {reason}" for path, reason in taken.items())
        force, merge = (
            spelled(f'existing="{word}"', f"--{word}") for word in ("force", "merge")
        )
        shows = spelled("`burnish generate --diff`", "--diff")
        choices = [
            *([f"{shows} shows what would change in the source"] if diff else []),
            f"{force} replaces what is there and keeps it as .bak",
            *([f"{merge} brings the changes into the new source"] if mergeable else []),
        ]
        super().__init__(
            f"expected to write where nothing is, or what Burnish wrote and nobody "
            f"changed, but {found}. Nothing was written: {', '.join(choices)}"
        )


class VerifyError(ConversionError):
    """A comparison that cannot be made, or numbers that disagree."""


class ExportError(ConversionError):
    """An operator or layer that cannot be written as ONNX, and why."""


class UsageError(ConversionError):
    """A command or call with arguments that make no sense together."""

    exit_code = 2


# --- context that is added to an error on its way up ---

#: The extras' packages, by import name.
EXTRAS = frozenset(
    {
        "jinja2",
        "ml_dtypes",
        "onnx",
        "onnx_ir",
        "pygit2",
        "rich",
        "safetensors",
        "tomlkit",
    }
)


@contextmanager
def needing(who: str, extra: str = "codegen") -> Iterator[None]:
    """Report a package of the extra that is missing, with the command that installs it.

    who: what needs it, "" where the message's reader knows.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise ModuleNotFoundError(
            f"{who} needs {package}, which is not installed; "
            f"run: pip install 'burnish[{extra}]'".lstrip(),
            name=package,
        ) from None


#: Whether messages are for the command line, which has words of its own.
on_command_line: ContextVar[bool] = ContextVar("on_command_line", default=False)


def spelled(python: str, command: str = "") -> str:
    """An option as the caller writes it: an argument in Python, or a command's option.

    command: by default the argument's name behind two hyphens.
    """
    if not on_command_line.get():
        return python
    return command or f"--{python.replace('_', '-')}"


@contextmanager
def about(model: Path) -> Iterator[None]:
    """Errors inside name the model; one that nobody raised on purpose says its sha256.

    Wrong usage is not about a file and stays as it is.
    """
    try:
        yield
    except UsageError:
        raise
    except (ConversionError, BurnishError) as error:
        if str(model) not in str(error):
            error.args = (f"{model}: {error}",)
        raise
    except Exception as error:
        if not isinstance(error, OSError | ModuleNotFoundError):
            error.add_note(identity(model))
        raise


def identity(model: Path) -> str:
    """Which model it was, for a report: its path, and a file's sha256."""
    try:
        with model.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:  # a folder, or gone
        return f"model {shown(model)}"
    return f"model {shown(model)}, sha256 {digest}"


@contextmanager
def noting(note: Callable[[], str]) -> Iterator[None]:
    """Errors inside carry a note of what became of the rest of the work; "" is none."""
    try:
        yield
    except Exception as error:
        if text := note():
            error.add_note(text)
        raise


def keep_inputs(written: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise a UsageError where a file to write is one that is read, or a link to it."""
    read = list(inputs)
    for path in written:
        for other in read:
            if path.resolve() == other.resolve() or (
                path.exists() and other.exists() and path.samefile(other)
            ):
                raise UsageError(
                    f"{path}: expected another file to write than {other}, which is an "
                    "input and stays as it is; choose another name"
                )


def others(count: int) -> str:
    """A sentence on the rest of `count` models when one failed."""
    return f"none of the {count} models was written" if count > 1 else ""


def already(files: Sequence[Path]) -> str:
    """A sentence on the files written before a model failed; "" if there are none."""
    return f"written before that: {', '.join(map(str, files))}" if files else ""
