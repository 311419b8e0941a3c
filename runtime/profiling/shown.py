"""A profile as text: a table of modules, and one of operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from burnish.profiling.rows import Row

if TYPE_CHECKING:
    from burnish.profiling.profiler import Profile

Cells = tuple[str, ...]


def text(
    profile: Profile, operators: int = 10, runs: int = 1, depth: int | None = None
) -> str:
    """Two tables. operators: how many rows of them. runs: times are those of one.

    depth: how far modules are listed below the one that was called.
    """
    if not profile.spans:
        return "nothing ran within the profile"
    found = profile.operators()
    parts = [
        summary(profile, runs),
        aligned(("module", "", "calls", *_COLUMNS), modules(profile, runs, depth)),
        aligned(
            ("operator", "calls", *_COLUMNS),
            (cells(row, profile.total, runs) for row in found[:operators]),
        ),
    ]
    if len(found) > operators:
        rest = sum(row.own for row in found[operators:])
        parts[-1] += (
            f"\n{len(found) - operators} more operators: {milliseconds(rest / runs)} ms"
        )
    return "\n\n".join(parts)


_COLUMNS = ("own ms", "total ms", "share", "results", "live at most")


def summary(profile: Profile, runs: int = 1) -> str:
    """One line: time, and memory."""
    return (
        f"{milliseconds(profile.total / runs)} ms"
        f"{f' (mean of {runs} runs)' if runs > 1 else ''}; "
        f"parameters {size(profile.parameters)}, results {size(profile.live)} at most"
    )


def modules(
    profile: Profile, runs: int = 1, depth: int | None = None
) -> Iterator[Cells]:
    """The cells of each module's row: its name below the one that called it."""
    paths: list[str] = []
    for row in profile.modules():
        if depth is not None and row.depth > depth:
            continue
        paths[row.depth :] = [row.name]
        above = f"{paths[row.depth - 1]}." if row.depth else ""
        name = row.name.removeprefix(above) if above != "." else row.name
        shown = f"{'  ' * row.depth}{name or row.detail}"
        _, *rest = cells(row, profile.total, runs)
        yield (shown, row.detail if name else "", *rest)


def cells(row: Row, total: int, runs: int = 1) -> Cells:
    """A row's name, calls, times and memory."""
    return (
        row.name,
        f"{row.calls / runs:g}",
        milliseconds(row.own / runs),
        milliseconds(row.total / runs),
        f"{row.own / max(total, 1):.1%}",
        size(row.allocated / runs),
        size(row.live),
    )


def aligned(head: Cells, rows: Iterable[Cells]) -> str:
    """Columns side by side: words to the left, numbers to the right."""
    lines = [head, *rows]
    words = head.index("calls")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(line, widths, words) for line in lines)


def _line(line: Sequence[str], widths: Sequence[int], words: int) -> str:
    cells = (
        f"{cell:<{width}}" if place < words else f"{cell:>{width}}"
        for place, (cell, width) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def milliseconds(nanoseconds: float) -> str:
    """ "0.012", "3.1", "250" """
    value = nanoseconds / 1e6
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def size(count: float) -> str:
    """ "120 B", "3.2 MB" """
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if count >= 1000:
            count, unit = count / 1000, larger
    return f"{count:,.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
