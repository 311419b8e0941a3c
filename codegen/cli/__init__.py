"""The `burnish` command: one module a command, nothing heavy imported before its use.

Data goes to stdout, messages and progress to stderr. Exit codes: 0 done; 1 the model
cannot be converted, does not verify, or generated code is out of date; 2 wrong usage;
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from burnish import __version__
from burnish.codegen.cli import check, demo, generate, inspect, report, upgrade, verify
from burnish.codegen.errors import ConversionError
from burnish.errors import BurnishError

COMMANDS = (generate, verify, inspect, check, upgrade, report, demo)

#: What `pip install 'burnish[codegen]'` brings; asked for by import name.
EXTRA = frozenset(
    {"jinja2", "ml_dtypes", "msgspec", "onnx", "onnx_ir", "rich", "safetensors"}
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    options = parser().parse_args(argv)
    try:
        code = options.run(options)
        sys.stdout.flush()
    except (ConversionError, BurnishError) as error:
        return _fail(options.command, str(error), getattr(error, "exit_code", 1))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        return _fail(
            options.command,
            f"needs {missing}, which is not installed; "
            f"run: pip install 'burnish[codegen]'",
        )
    except BrokenPipeError:
        # the reader of stdout went away (`| head`); nothing is left to tell anybody
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _fail(options.command, _os_message(error))
    except KeyboardInterrupt:
        return _fail(options.command, "interrupted", 130)
    return code


def parser() -> argparse.ArgumentParser:
    """The command line, all commands included."""
    top = argparse.ArgumentParser(
        prog="burnish",
        description="Turns a trained model file into Python source that runs, trains "
        "and ships on NumPy or CuPy alone.",
        epilog="burnish COMMAND --help tells more. Try: burnish demo",
    )
    top.add_argument("--version", action="version", version=f"burnish {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        command = commands.add_parser(
            name, help=module.HELP, description=module.__doc__, allow_abbrev=False
        )
        module.arguments(command)
        command.set_defaults(run=module.run)
    return top


def _fail(command: str, message: str, code: int = 1) -> int:
    print(f"burnish {command}: {message}", file=sys.stderr)
    return code


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason
