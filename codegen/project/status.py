"""Check by digests whether a project's modules are current; nothing is converted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from burnish.codegen.project.tables import Project, Table, options
from burnish.codegen.search import digest, shown_name, walk
from burnish.codegen.signature import Header
from burnish.codegen.tools.check import Result, generated, result


def states(project: Project) -> Iterator[Result]:
    """The state of every module that the project's tables name, in their order."""
    for table in project.models:
        yield _state(table)


def _state(table: Table) -> Result:
    model = shown_name(table.source)
    if not table.target.is_file():
        reason = "run: burnish generate"
        return Result(table.target, model, "not generated", ("not generated",), reason)
    found = list(generated([table.target]))
    if not found:
        reason = "was not written by Burnish"
        return Result(table.target, model, "edited", ("edited",), reason)
    ((path, header),) = found
    state = result(path, header, _places(table, header) if header else [])
    reason = _other(table, header) if header else ""
    if not reason or "stale" in state.states:
        return state
    states = ("stale", *(s for s in state.states if s != "current"))
    reasons = "; ".join(filter(None, (reason, state.reason)))
    return replace(state, state="stale", states=states, reason=reasons)


def _places(table: Table, header: Header) -> list[Path]:
    """The file that the header names, among those of the table's model."""
    if table.source.is_file() and shown_name(table.source) == header.model:
        return [table.source]
    folder = table.source if table.source.is_dir() else table.source.parent
    return [path for path in walk(folder) if shown_name(path) == header.model]


def _other(table: Table, header: Header) -> str:
    """Why a build would write another source, or refuse to; "" where it would not."""
    if not table.source.exists():
        return ""
    asked = options(table).spelled()
    if header.options != asked:
        return (
            f"pyproject.toml asks for options {asked or 'as usual'}, the source has "
            f"{header.options or 'the usual ones'}"
        )
    pin = (table.sha256 or {}).get("")
    if pin and table.source.is_file() and digest(table.source) != pin:
        return f"{table.source} is not the model that sha256 pins"
    return ""
