"""argparse, with mistakes that say what was probably meant."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from burnish.codegen.cli.parsing.failure import USAGE, Failure, versions


class Misuse(Exception):
    """Words that the command line does not know."""

    def __init__(self, failure: Failure):
        super().__init__(failure.message)
        self.failure = failure


class Parser(argparse.ArgumentParser):
    """Raises Misuse where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        """One line and where to read on; the whole usage is what --help prints."""
        command = self.prog.removeprefix("burnish").strip()
        more = (f"more: {self.prog} --help",)
        raise Misuse(Failure(command, "UsageError", message, USAGE, more))

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Unknown words, each with the option of the closest spelling."""
        known = [name for action in self._actions for name in action.option_strings]
        self.error("; ".join(f"unknown: {_beside(word, known)}" for word in unknown))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = list(map(str, action.choices))
        if action.dest == "command" and Path(value).exists():
            self.error(f"expected a command, got a file; try: burnish generate {value}")
        if action.dest == "command":
            names += options(self)
        self.error(
            f"{argparse._get_action_name(action)}: expected one of "
            f"{', '.join(map(str, action.choices))}; "
            f"got {_beside(str(value), names)}"
        )


def flags(command: argparse.ArgumentParser, **texts: str) -> None:
    """Options that are given or not, by name, with their line of --help."""
    for name, text in texts.items():
        option = f"--{name.replace('_', '-')}"
        command.add_argument(option, action="store_true", help=text)


def new_file(command: argparse.ArgumentParser) -> None:
    """Add -o, for commands that write another model file."""
    command.add_argument(
        *("-o", "--out"),
        type=Path,
        metavar="NEW",
        required=True,
        help="the file to write",
    )


def whole(text: str) -> int:
    """An option's whole number."""
    try:
        return int(text)
    except ValueError:
        raise _not("a whole number", text) from None


def natural(text: str) -> int:
    """An option's whole number, 0 or more."""
    if not text.isdecimal():
        raise _not("a whole number, 0 or more", text)
    return int(text)


def positive(text: str) -> int:
    """An option's whole number, 1 or more."""
    if not text.isdecimal() or not int(text):
        raise _not("a whole number, 1 or more", text)
    return int(text)


def distance(text: str) -> float:
    """An option's number, 0 or more."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise _not("a number, 0 or more", text)
    return number


def _not(kind: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"expected {kind}, got {text!r}")


def _beside(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word.partition("=")[0], list(known), 1)
    return f"{word!r}" + (f" (did you mean {near[0]}?)" if near else "")


class Prints(argparse.Action):
    """An option that prints a text, made when it is asked for, and ends."""

    def __init__(self, *args: Any, text: Callable[[Parser, Any], str], **settings: Any):
        super().__init__(*args, **settings)
        self.text = text

    def __call__(self, parser: Any, _namespace: Any, value: Any, _: Any = None) -> None:
        print(self.text(parser, value))
        parser.exit()


def version(_parser: Parser, _value: Any) -> str:
    """A line for Burnish, for Python and for each package that decides the output."""
    return "\n".join(f"{name} {number}" for name, number in versions().items())


def options(parser: argparse.ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings]
