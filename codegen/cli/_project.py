"""`burnish generate` without a model: the modules of the project it is called in."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burnish.codegen.errors import ConversionError, UsageError
from burnish.errors import BurnishError

if TYPE_CHECKING:
    from burnish.codegen.project.tables import Project
    from burnish.codegen.project.update import Module, Updated

_COMPILED = {"compiled": False, "dim": [], "input": []}


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.output.generated import Options

    known = {each.name: each.default for each in fields(Options)}
    known |= {"out": None, "template_dir": None, "rules": []} | _COMPILED
    for name, usual in known.items():
        if getattr(options, name) != usual:
            flag = name.replace("_", "-")
            word = flag if usual is not True else f"no-{flag}"
            where = "it belongs in pyproject.toml"
            if name in _COMPILED:
                where = "run it where they are deployed, on each model"
            raise UsageError(
                f"--{word}: expected a MODEL beside it; for the models of a project "
                f"{where}"
            )
    project = expected_project(Path())
    if options.watch and options.existing != "keep":
        raise UsageError(f"--watch: expected no --{options.existing} beside it")
    if options.watch:
        return _watch(project.root, options)
    return _once(project, options)


def expected_project(folder: Path) -> Project:
    """The project of a folder; raises UsageError where there is none."""
    from burnish.codegen.project import tables

    project = tables.found(folder)
    if project is None:
        raise UsageError(
            "expected MODEL, or a pyproject.toml with [[tool.burnish.model]] tables in "
            "this folder or above; burnish init MODEL writes one"
        )
    return project


def _once(project: Project, options: argparse.Namespace) -> int:
    from burnish.codegen.project import update
    from burnish.codegen.tools import console

    showing = options.existing == "diff"
    with console.progress() as listen:
        every = update.modules(
            project,
            existing="force" if showing else options.existing,
            progress=listen,
            explain=console.say if options.explain else None,
        )
    if showing:
        return show_diffs(
            ((m.settled.source, m.settled.generated.text) for m in every), options.json
        )
    done = update.up_to_date(project, every)
    if options.json:
        console.emit({"project": project.root, "generated": list(map(_row, done))})
    else:
        for each in done:
            _report(each)
    return int(any(each.module.settled.conflicts for each in done))


def _row(done: Updated) -> dict[str, Any]:
    return {
        "model": done.module.table.source,
        "module": done.module.table.module,
        "files": done.module.outputs,
        "written": done.written,
        "kept": done.kept,
        "conflicts": done.module.settled.conflicts,
        "notes": done.module.settled.generated.notes,
    }


def _report(done: Updated) -> None:
    from burnish.codegen.tools import console

    for path in done.written:
        console.line(near(path))
    for path in done.kept:
        console.say(f"kept: {near(path)}")
    if not done.written:
        console.say(f"{done.module.table.module}: is up to date")
    if conflicts := done.module.settled.conflicts:
        marked = f"{console.count(conflicts, 'conflict')}, marked <<<<<<< and >>>>>>>"
        console.say(f"{near(done.module.settled.source)}: {marked}")


def near(path: Path) -> Path:
    """A path from the current folder, where it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def show_diffs(files: Iterable[tuple[Path, str]], as_json: bool) -> int:
    """The diffs of what would be written."""
    from burnish.codegen.output.difference import difference
    from burnish.codegen.tools import console

    rows = [(place, difference(place, text)) for place, text in files]
    if as_json:
        console.emit({"diffs": [{"path": p, "diff": d} for p, d in rows]})
        return 0
    for place, diff in rows:
        for line in diff.splitlines():
            console.line(line)
        if not diff:
            console.say(f"{place}: stays as it is")
    return 0


# --- watching ---

_PAUSE = 0.3  # seconds between two looks


def _watch(root: Path, options: argparse.Namespace) -> int:
    """Generate now, and whenever a file that decides the output changes; never ends."""
    from burnish.codegen.project import tables, update
    from burnish.codegen.tools import console

    every: list[Module] = []
    while True:
        before = _times(root, every)
        try:
            project = tables.read(root)
            every = update.modules(project)
            for each in update.up_to_date(project, every):
                _report(each)
        except (ConversionError, BurnishError, OSError) as error:
            console.say(f"burnish generate: {error}")
        before = _times(root, every) | before  # what changed meanwhile has changed
        console.say("watching; Ctrl-C ends")
        while _times(root, every) == before:
            time.sleep(_PAUSE)


def _times(root: Path, every: Iterable[Module]) -> dict[Path, tuple[int, int]]:
    """When each file that the modules are made of was written, and its size."""
    from burnish.codegen.project import tables

    paths = {root / tables.FILE, *(path for m in every for path in m.inputs)}
    with suppress(UsageError):  # it is half saved, and its time is looked at anyway
        paths |= {table.source for table in tables.read(root).models}
    found = {}
    for path in paths:
        try:
            seen = os.stat(path)
        except OSError:
            continue
        found[path] = (seen.st_mtime_ns, seen.st_size)
    return found
