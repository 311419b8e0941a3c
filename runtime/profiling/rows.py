"""Rows: spans added up by module, and by operator."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from burnish.profiling.spans import Span, own_times


@dataclasses.dataclass(slots=True)
class Row:
    """The calls of one module or operator.

    total: nanoseconds with what was called within; own: without. allocated: bytes of
    results. live: the most bytes of results alive during one of the calls. depth: of a
    module, below the one that was called.
    """

    name: str
    detail: str
    depth: int = 0
    calls: int = 0
    total: int = 0
    own: int = 0
    allocated: int = 0
    live: int = 0

    def add(self, span: Span, own: int, nested: bool) -> None:
        """nested: within another call of the same row, whose total holds this one's."""
        self.calls += 1
        self.own += own
        self.live = max(self.live, span.live)
        if not nested:
            self.total += span.duration
            self.allocated += span.allocated


def by_module(spans: Sequence[Span]) -> list[Row]:
    """A row for each module, in the order of the first calls, below its parent.

    What no module called (backward, an optimizer's step) has rows of its own.
    """
    rows: dict[tuple[int, ...], Row] = {}
    at: list[tuple[int, ...]] = []
    numbers: dict[tuple[tuple[int, ...], str, str], int] = {}
    owns = own_times(spans)
    for span, own in zip(spans, owns, strict=True):
        above = at[span.parent] if span.parent >= 0 else ()
        if above and span.kind in ("operator", "gradient"):
            at.append(above)
            rows[above].own += own
            continue
        name, detail = _label(span)
        number = numbers.setdefault((above, name, detail), len(numbers))
        key = (*above, number)
        at.append(key)
        row = rows.setdefault(key, Row(name, detail, len(above)))
        row.add(span, own, nested=False)
    return [rows[key] for key in sorted(rows)]


def _label(span: Span) -> tuple[str, str]:
    if span.kind == "gradient":
        return "backward", ""
    if span.kind == "operator":
        return "outside of modules", ""
    return span.name, span.detail if span.kind == "module" else span.kind


def by_operator(spans: Sequence[Span]) -> list[Row]:
    """A row for each operator and each gradient, the one with the most own time first.

    The gradient of an operator is "name (backward)".
    """
    rows: dict[str, Row] = {}
    for place, (span, own) in enumerate(zip(spans, own_times(spans), strict=True)):
        if span.kind == "module":
            continue
        name = label(span)
        row = rows.setdefault(name, Row(name, ""))
        row.add(span, own, nested=_within(spans, place, name))
    return sorted(rows.values(), key=lambda row: -row.own)


def label(span: Span) -> str:
    """An operator's name, as tables and traces have it."""
    return f"{span.name} (backward)" if span.kind == "gradient" else span.name


def _within(spans: Sequence[Span], place: int, name: str) -> bool:
    return any(
        each.kind != "module" and label(each) == name for each in _above(spans, place)
    )


def _above(spans: Sequence[Span], place: int) -> Iterable[Span]:
    while (place := spans[place].parent) >= 0:
        yield spans[place]
