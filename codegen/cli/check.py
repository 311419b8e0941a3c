"""Compare generated files with the model files that they name; change nothing.

Every Python file below PATHS whose docstring says what it was imported from is looked
at: its model file is searched beside it, then below --source. One line a file; exit
code 1 when a model file changed, is missing, or was read by another version.
"""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "tell whether generated code is up to date with its model files"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATHS",
        help="generated files, or folders to search (default: the current folder)",
    )
    command.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="where the model files are (default: the current folder)",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.tools import check, console

    source = options.source or Path()
    results = list(check.check(options.paths or [Path()], source))
    if options.json:
        console.emit({"files": results})
    else:
        for result in results:
            reason = f", {result.reason}" if result.reason else ""
            console.line(f"{result.path}: {result.state}{reason}")
        if not results:
            console.say("no generated files found")
    return int(any(result.state != "current" for result in results))
