"""The terminal: data on stdout, messages and progress on stderr, through rich.

Nothing moves and nothing is coloured when the stream is no terminal or NO_COLOR is set.
Text of files goes through `shown`, so that a name is neither a colour nor a line.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from burnish.codegen.terminal import filtered, shown, unfiltered

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from burnish.codegen.verify import Report

#: Hears how far a stage of the work is: (stage, done, total).
Listener: TypeAlias = Callable[[str, int, int], None]

_PAGE = 80  # columns, where there is no terminal to ask


def say(message: object) -> None:
    """One message for the person, one line on stderr."""
    print(shown(message), file=sys.stderr)


def line(text: object) -> None:
    """One line of data on stdout."""
    print(shown(text))


def emit(report: Any) -> None:
    """One JSON object on stdout; dataclasses and paths are taken as they are."""
    print(json.dumps(_plain(report), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """A value in JSON's types: null for NaN and infinities, text for others."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        return str(value)
    return {name: _plain(getattr(value, name)) for name in fields}


def out() -> Console:
    """rich's console on stdout; as wide as the text when it is no terminal."""
    from rich.console import Console

    console = Console(highlight=False, file=unfiltered(sys.stdout))
    if not console.is_terminal:
        console.file = sys.stdout
        console.width = 10_000
    return console


@contextmanager
def progress() -> Iterator[Listener]:
    """A listener that draws a bar on stderr; deaf where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    screen = Console(file=unfiltered(sys.stderr))
    # rich takes the streams to print above the bar, so the filter goes before it again
    with Progress(*columns, console=screen, transient=True) as drawn, filtered():
        bar = drawn.add_task("")

        def listen(stage: str, done: int, total: int) -> None:
            drawn.update(bar, description=shown(stage), completed=done, total=total)

        yield listen


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Aligned columns on stdout; numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    lines = [tuple(row) for row in rows]
    for i, name in enumerate(columns):
        numbers = all(isinstance(row[i], int | float) for row in lines)
        made.add_column(Text(name), justify="right" if numbers and lines else "left")
    for row in lines:
        cells = (f"{i:,}" if isinstance(i, int) else shown(i) for i in row)
        made.add_row(*map(Text, cells))
    console = out()
    with console.capture() as drawn:
        console.print(made)
    for text in drawn.get().splitlines():
        print(text.rstrip(), file=console.file)


def comparison(report: Report) -> None:
    """A table with a line for each output, and the verdict."""
    table(
        ("output", "shape", "largest difference", "relative", "limit", "verdict"),
        [
            (
                output.name,
                f"{output.dtype}[{', '.join(map(str, output.shape))}]",
                f"{output.max_abs:.1e}",
                f"{output.max_rel:.1e}",
                f"{output.limit:.1e}",
                "agrees" if output.agrees else output.reason,
            )
            for output in report.outputs
        ],
    )
    for note in report.notes:
        say(f"note: {note}")
    verdict = "agrees with" if report.agrees else "does not agree with"
    names = (os.path.basename(path) for path in (report.module, report.model))
    line(f"{f' {verdict} '.join(names)} ({report.reference})")


def python(source: str) -> None:
    """Python source on stdout, highlighted on a terminal."""
    console = out()
    if not console.is_terminal:
        print(source, end="")
        return
    from rich.syntax import Syntax

    highlighted = Syntax(
        source, "python", theme="ansi_dark", background_color="default"
    )
    console.print(highlighted)


def heading(text: str) -> None:
    """A line that starts a part of a longer story."""
    from rich.text import Text

    out().print(Text(f"\n{shown(text)}", style="bold"))


def pictures(images: np.ndarray, captions: Sequence[str]) -> None:
    """Grey images (count, height, width) in 0..1 side by side, two pixels a cell.

    As many as fit. Without colours a pixel is either on or off.
    """
    from rich.text import Text

    console = out()
    cell = _grey if console.color_system else _black_or_white
    width = images.shape[2] + 2
    fit = max(1, (console.width if console.is_terminal else _PAGE) // width)
    rows = images[:fit].swapaxes(0, 1)
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        line = Text()
        for pair in zip(upper, lower, strict=True):
            for pixels in zip(*pair, strict=True):
                line.append(*cell(*map(float, pixels)))
            line.append("  ")
        line.rstrip()
        console.print(line)
    console.print(Text("".join(f"{text:{width}}" for text in captions[:fit]).rstrip()))


def _grey(upper: float, lower: float) -> tuple[str, str]:
    front, back = (
        f"rgb({v},{v},{v})" for v in (round(255 * p) for p in (upper, lower))
    )
    return "▀", f"{front} on {back}"


def _black_or_white(upper: float, lower: float) -> tuple[str, str]:
    return " ▄▀█"[2 * (upper > 0.5) + (lower > 0.5)], ""


def count(number: int, noun: str) -> str:
    """ "1 file", "2 files", "34,826 parameters" """
    return f"{number:,} {noun}{'s' * (number != 1)}"
