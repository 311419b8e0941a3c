"""Let a project's build generate the module of a model.

Writes a [[tool.burnish.model]] table for each MODEL into the pyproject.toml of the
current folder, and what its build backend needs: comments and order stay as they are.
No module is generated yet: `burnish generate` does that, and so does every build.
"""

from __future__ import annotations

import argparse
from pathlib import Path

EXTRA = "init"  #: what writes TOML

HELP = "let a project's build generate the module of a model"


def arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("models", nargs="+", type=Path, metavar="MODEL", help="a model file or folder")
    add(
        "--package",
        metavar="NAME",
        help="the package to write modules into (default: the project's own)",
    )
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.project import starting
    from burnish.codegen.tools import console

    done: list[str] = []
    written = starting.start(Path(), options.models, options.package, done.append)
    if options.json:
        console.emit({"written": written, "done": done})
        return 0
    for line in done:
        console.line(line)
    next_step = "next: burnish generate"
    console.say(next_step if written else "pyproject.toml: stays as it is")
    return 0
