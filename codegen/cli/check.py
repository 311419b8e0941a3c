"""Report generated files that were edited, and those whose model file changed.

Every Python file below PATHS whose docstring says what it was imported from is looked
at: its model file is searched beside it, then below --source. One line a file: current;
stale (the model file changed) or missing (there is none); edited (the source changed);
weights missing; weights changed (others, or other numbers). Exit code 1 when one is not
current; --allow takes a state as good. Nothing is changed.

Without PATHS, in a project whose pyproject.toml has [[tool.burnish.model]] tables, also
the modules that they name: not generated yet, or stale by their options or their pin.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from burnish.codegen.cli.parsing.parser import flags

if TYPE_CHECKING:
    from burnish.codegen.tools.check import Result

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
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=(
            "edited",
            "weights-missing",
            "weights-changed",
            "missing",
            "not-generated",
        ),
        help="take this state as current; may be repeated",
    )
    flags(
        command,
        diff="show what `generate` would change in each source that is not current",
        json="print one JSON object",
    )


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.errors import UsageError
    from burnish.codegen.tools import check, console

    for path in options.paths:
        if path.is_file() and path.suffix != ".py":
            raise UsageError(
                f"{path}: expected generated source (.py) or a folder with some; what "
                f"it was generated from goes behind --source"
            )
    source = options.source or Path()
    results = [] if options.paths else _of_tables()
    known = {result.path.resolve() for result in results}
    others = check.check(options.paths or [Path()], source)
    results += [result for result in others if result.path.resolve() not in known]
    diffs = _diffs(results, source) if options.diff else {}
    if options.json:
        found = [{"path": path, "diff": diff} for path, diff in diffs.items()]
        console.emit({"files": results} | ({"diffs": found} if options.diff else {}))
    else:
        for result in results:
            reason = f", {result.reason}" if result.reason else ""
            console.line(f"{result.path}: {', '.join(result.states)}{reason}")
            for line in diffs.get(result.path, "").splitlines():
                console.line(line)
        if not results:
            console.say("no generated files found")
    allowed = {"current", *(name.replace("-", " ") for name in options.allow)}
    return int(any(not allowed.issuperset(result.states) for result in results))


def _of_tables() -> list[Result]:
    """The modules that the tables of the project here name, with paths from here."""
    from burnish.codegen.cli._project import near
    from burnish.codegen.project import status, tables

    project = tables.found(Path())
    if project is None:
        return []
    return [replace(each, path=near(each.path)) for each in status.states(project)]


def _diffs(results: list[Result], source: Path) -> dict[Path, str]:
    """Diffs of what `generate` would change in sources that can be generated again."""
    from burnish.codegen.errors import ConversionError
    from burnish.codegen.output.difference import difference
    from burnish.codegen.tools import check, console

    found = {}
    for result in results:
        if {"stale", "edited"}.isdisjoint(result.states):
            continue
        try:
            text = check.regenerated(result.path, source)
        except ConversionError as error:
            console.say(f"{result.path}: no diff: {error}")
        else:
            found[result.path] = difference(result.path, text)
    return found
