"""The `burnish` command: one module a command, nothing heavy imported before its use.

In: arguments. Out: data to stdout, messages and progress to stderr, an exit status.
Invariant: 0 done; 1 the model cannot be converted or verified, or generated code is
out of date; 2 wrong usage; 3 an error of Burnish itself; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from burnish.codegen.cli import (
    check,
    demo,
    export,
    generate,
    init,
    inspect,
    kernels,
    profile,
    report,
    upgrade,
    verify,
)
from burnish.codegen.cli.parsing import failure as _failure
from burnish.codegen.cli.parsing.completion import SHELLS, completion
from burnish.codegen.cli.parsing.parser import Misuse, Parser, Prints, version
from burnish.codegen.errors import EXTRAS, ConversionError, needing, on_command_line
from burnish.codegen.terminal import filtered
from burnish.codegen.tools.console import say
from burnish.errors import BurnishError

COMMANDS = (
    generate,
    verify,
    inspect,
    check,
    export,
    init,
    upgrade,
    profile,
    report,
    demo,
    kernels,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    token = on_command_line.set(True)
    try:
        with filtered(), warnings.catch_warnings():
            warnings.showwarning = _warn
            return _piped(words)
    finally:
        on_command_line.reset(token)


def parser() -> Parser:
    """The command line, all commands included."""
    top = Parser(
        prog="burnish",
        description="Turns a trained model file into Python source that runs, trains "
        "and ships on NumPy or CuPy alone.",
        epilog="burnish COMMAND --help tells more. Try: burnish demo. Exit codes: 0 "
        "done; 1 the model cannot be converted, does not verify or is out of date; 2 "
        "wrong usage; 3 an error of Burnish itself; 130 interrupted.",
    )
    top.add_argument(
        "--version",
        action=Prints,
        nargs=0,
        text=version,
        help="show the versions of Burnish, Python and what is installed, and exit",
    )
    top.add_argument(
        "--print-completion",
        action=Prints,
        text=completion,
        choices=list(SHELLS),
        help="print a script that completes commands and options, and exit",
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS:
        command = commands.add_parser(
            _name(module),
            help=module.HELP,
            description=module.__doc__,
            allow_abbrev=False,
        )
        module.arguments(command)
        command.add_argument(
            "--traceback",
            action="store_true",
            help="show where an error came from, for a report",
        )
        command.set_defaults(runs=module, parser=command)
    return top


def _name(command: ModuleType) -> str:
    return command.__name__.rpartition(".")[2]


def _piped(words: list[str]) -> int:
    """Run a command whose reader may close the pipe (`| head`), which is no error."""
    try:
        code = _started(words)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _started(words: list[str]) -> int:
    top = parser()
    try:
        options, unknown = top.parse_known_args(words)
        if unknown:
            getattr(options, "parser", top).refuse(unknown)
        if options.command is None:
            top.error(f"expected a COMMAND: {', '.join(map(_name, COMMANDS))}")
    except Misuse as error:
        return _failure.report(error.failure, "--json" in words)
    except SystemExit as done:  # --help, --version
        return int(done.code or 0)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    """The command; every error becomes one message and an exit code."""
    try:
        with needing("", getattr(options.runs, "EXTRA", "codegen")):
            return options.runs.run(options)
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if options.traceback:
            _failure.show_traceback(error)
        return _failure.report(
            _failure_of(options, error), getattr(options, "json", False)
        )


def _failure_of(options: argparse.Namespace, error: BaseException) -> _failure.Failure:
    match error:
        case ConversionError() | BurnishError():
            code = getattr(error, "exit_code", _failure.FAILED)
            return _failure.expected(options.command, error, str(error), code)
        case KeyboardInterrupt():
            return _failure.Failure(
                options.command, "Interrupted", "interrupted", _failure.INTERRUPTED
            )
        case ModuleNotFoundError() if error.name in EXTRAS:
            message = str(error)
        case OSError():
            message = _os_message(error)
        case MemoryError():
            message = f"needs more memory than there is ({error})".replace(" ()", "")
        case _:
            model = getattr(options, "model", None)
            return _failure.internal(options.command, error, model)
    return _failure.expected(options.command, error, message, _failure.FAILED)


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


def _warn(message: Any, *_: Any, **__: Any) -> None:
    """A warning of a package: one line, without the place in its source."""
    say(f"warning: {message}")
