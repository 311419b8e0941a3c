"""Stages: consecutive units become one list of modules, and its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from burnish.codegen.arrange.recover.excitation import EXCITE
from burnish.codegen.arrange.recover.units import BRANCHES, Unit
from burnish.codegen.names.identifier import Identifier
from burnish.codegen.program import Flow


@dataclass
class Stage:
    """Units that follow each other, and the attribute that holds them."""

    units: list[Unit]
    name: str = ""


def stages(units: Sequence[Unit], flow: Flow) -> list[Stage]:
    """The units by the lists that hold them.

    A list ends behind a unit whose result is read by more than the next one.
    """
    following = {(unit.start, unit.kind): unit for unit in units}
    linked = {
        after
        for unit in units
        for after in [following.get((unit.end, unit.kind))]
        if after is not None and not _is_apart(unit, after, flow)
    }
    rows: list[list[Unit]] = []
    for unit in units:
        if unit in linked:
            continue
        row = [unit]
        while (after := following.get((row[-1].end, row[-1].kind))) in linked:
            row.append(after)
        rows.append(row)
    stages = [Stage(part) for row in rows for part in _by_size(row)]
    lists = [stage for stage in stages if len(stage.units) > 1]
    for number, stage in enumerate(lists, 1):
        stage.name = _list_name(lists, number)
    single = Counter(_word(s) for s in stages if not s.name)
    seen: Counter[str] = Counter()
    for stage in stages:
        if not stage.name:
            word = _word(stage)
            seen[word] += 1
            stage.name = f"{word}{seen[word]}" if single[word] > 1 else word
    return stages


def _is_apart(before: Unit, unit: Unit, flow: Flow) -> bool:
    """Whether two units in a row are no neighbours in a list.

    A module that has a name already may be between them, or the first one's result is
    read elsewhere, too. Units side by side read one value.
    """
    entry, end = unit.segments[0].entry, before.segments[-1].exit
    if end is None or unit.start >= BRANCHES:
        return False
    is_next = entry is None or entry is end
    return not is_next or flow.is_read_outside(end, {*unit.statements})


def _word(stage: Stage) -> str:
    """The attribute of a unit that is no list, without its count."""
    kind = stage.units[0].kind
    if kind.startswith(("ConvBN", "ConvTransposeBN")):
        return "conv" if kind.startswith("ConvBN") else "up"
    return "se" if kind == EXCITE else Identifier.variable(kind)


def _by_size(row: list[Unit]) -> list[list[Unit]]:
    """Split a run of units before each unit that changes the size of its input."""
    parts: list[list[Unit]] = []
    for unit in row:
        if not parts or unit.changes_size():
            parts.append([unit])
        else:
            parts[-1].append(unit)
    several = [part for part in parts if len(part) > 1]
    return parts if 2 * len(several) >= len(parts) else [row]


def _list_name(lists: list[Stage], number: int) -> str:
    kinds = [other.units[0].kind for other in lists]
    if kinds == ["EncoderLayer", "DecoderLayer"]:
        return "encoder" if number == 1 else "decoder"
    if len(lists) > 1:
        return f"stage{number}"
    return "layers" if kinds[0].endswith("Layer") else "blocks"


def explained(stage: Stage) -> str:
    unit = stage.units[0]
    what = f"{len(unit.segments)} segments" if len(unit.segments) > 1 else "one segment"
    count = len(stage.units)
    return (
        f"structure: {stage.name} holds {count} {unit.kind}"
        f" ({len(unit.statements)} statements in {what}; the form occurs {unit.times}"
        " times)"
    )
