"""A live dashboard in the terminal: progress, speed, metrics, small plots (rich)."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from burnish.learner.display.braille import plot
from burnish.learner.display.renderer import Progress, Renderer, Run

_STYLE = {"train": "cyan", "valid": "magenta", "test": "green"}
_KEPT = 400  # batches of the running epoch that a plot shows
_EVERY = 0.1  # seconds between two pictures


class Dashboard(Renderer):
    """Draws itself anew while a run goes, and leaves the last picture behind."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console()
        self._live: Live | None = None
        self._run: Run | None = None
        self._progress: Progress | None = None
        self._history: dict[tuple[str, str], list[float]] = {}
        self._batches: dict[str, list[float]] = {}
        self._spent: dict[str, tuple[float, int]] = {}
        self._drawn = 0.0

    def start(self, run: Run) -> None:
        self._run = run
        self._live = Live(console=self.console, auto_refresh=False)
        self._live.start()

    def step(self, progress: Progress) -> None:
        self._progress = progress
        if progress.iteration == 1:
            self._batches = {}
        for entry in progress.entries:
            values = self._batches.setdefault(entry.name, [])
            values.append(entry.value)
            del values[:-_KEPT]
        self._spent[progress.split] = (progress.seconds, progress.iteration)
        if time.monotonic() - self._drawn > _EVERY:
            self._draw()

    def epoch(self, split: str, epoch: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._history.setdefault((split, name), []).append(value)
        self._draw()

    def end(self, summary: str, reason: str | None) -> None:
        if self._live is not None:
            self._draw()
            self._live.stop()
            self._live = None
        if reason:
            self.console.print(Text(f"ended early: {reason}", style="yellow"))
        if summary:
            self.console.print(Text(summary))

    # --- the picture ---

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._live is not None:
            self._live.update(self.picture(), refresh=True)

    def picture(self) -> Any:
        """The drawing: a heading, the bar, the metrics with their plots."""
        run, progress = self._run, self._progress
        if run is None or progress is None:
            return Text("")
        heading = Text(f"{run.model}", style="bold")
        heading.append(f"  {run.num_params:,} parameters on {run.device}", style="dim")
        return Group(heading, self._bar(progress), self._table(progress))

    def _bar(self, progress: Progress) -> Table:
        grid = Table.grid(padding=(0, 2))
        total = progress.total
        speed = progress.iteration / progress.seconds if progress.seconds else 0.0
        count = f"{progress.iteration}/{total}" if total else f"{progress.iteration}"
        cells: list[Any] = [
            Text(f"epoch {progress.epoch}/{progress.epochs}"),
            Text(progress.split, style=_STYLE.get(progress.split, "")),
            ProgressBar(total, progress.iteration, width=30),
            Text(count),
            Text(f"{speed:.1f} batches/s", style="dim"),
        ]
        if total and speed:
            left = (total - progress.iteration) / speed
            cells.append(Text(f"epoch {duration(left)} left", style="dim"))
            if progress.epochs > progress.epoch:
                rest = left + self._of_other_epochs(progress, speed, total)
                cells.append(Text(f"run {duration(rest)} left", style="dim"))
        grid.add_row(*cells)
        return grid

    def _of_other_epochs(self, progress: Progress, speed: float, total: int) -> float:
        """Seconds that the epochs after this one take, as far as is known."""
        seconds = {split: spent for split, (spent, _) in self._spent.items()}
        seconds[progress.split] = total / speed
        return (progress.epochs - progress.epoch) * sum(seconds.values())

    def _table(self, progress: Progress) -> Table:
        space = 2 if self.console.width >= 100 else 1  # none is cut off
        table = Table(box=None, padding=(0, space), header_style="dim")
        for title in ("metric", "batch", "train", "valid", "epochs", "this epoch"):
            right = title in ("batch", "train", "valid")
            table.add_column(title, justify="right" if right else "left")
        running = {entry.name: entry for entry in progress.entries}
        units = self._run.units if self._run else {}
        known = {*running, *(name for _, name in self._history)}
        for name in dict.fromkeys([*units, *sorted(known)]):
            values = {split: self._history.get((split, name), []) for split in _STYLE}
            shown = {s: f"{v[-1]:.4g}" if v else "" for s, v in values.items()}
            if name in running:
                shown[progress.split] = f"{running[name].running:.4g}"
            unit = units.get(name, "")
            trends = [
                Text(plot(values[split], 12, 1)[0], style=_STYLE[split])
                for split in ("train", "valid")
                if len(values[split]) > 1
            ]
            batch = f"{running[name].value:.4g}" if name in running else ""
            table.add_row(
                Text(f"{name} ({unit})" if unit else name),
                Text(batch),
                Text(shown["train"] or shown["test"], style=_STYLE["train"]),
                Text(shown["valid"], style=_STYLE["valid"]),
                Text(" ").join(trends),
                Text(plot(self._batches.get(name, []), 10 * space, 1)[0], style="dim"),
            )
        return table


def duration(seconds: float) -> str:
    """Whole seconds as people write them: 8 s, 3:20, 1:02:03."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
