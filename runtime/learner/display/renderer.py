"""Display of a run's progress: lines of text, or a user's own renderer."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from burnish.learner.events import Entry
from burnish.nn import Module


@dataclass(frozen=True, slots=True)
class Run:
    """The facts known of a run when it starts."""

    model: str
    num_params: int
    device: str
    epochs: int
    first_epoch: int
    units: dict[str, str]

    @classmethod
    def of(
        cls, model: Module, epochs: int, units: dict[str, str], first_epoch: int = 1
    ) -> Run:
        """A run of `model` for epochs up to `epochs`."""
        return cls(
            model=type(model).__name__,
            num_params=model.num_params,
            device=str(model.device),
            epochs=epochs,
            first_epoch=first_epoch,
            units=units,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run is after one batch.

    total: batches of the epoch, None where that is not known; seconds: since the
    epoch's first batch; entries: each metric of this batch and of the epoch so far.
    """

    split: str
    epoch: int
    epochs: int
    iteration: int
    total: int | None
    seconds: float
    entries: Sequence[Entry]


class Renderer:
    """A renderer that shows nothing; override what should show something."""

    def start(self, run: Run) -> None:
        """Called once, before the first batch."""

    def step(self, progress: Progress) -> None:
        """Called after every batch."""

    def epoch(self, split: str, epoch: int, values: dict[str, float]) -> None:
        """Called at the end of an epoch of one split, with its metrics."""

    def end(self, summary: str, reason: str | None) -> None:
        """Called once at the end, after an error too; reason: why it ended early."""


class LineRenderer(Renderer):
    """One line for each epoch of each split, and one now and then in a long epoch.

    every: seconds between lines within an epoch.
    """

    def __init__(self, every: float = 10.0, file: TextIO | None = None):
        self.every = every
        self.file = file
        self._units: dict[str, str] = {}
        self._shown = 0.0
        self._last: Progress | None = None

    def start(self, run: Run) -> None:
        self._units, self._shown = run.units, time.monotonic()
        self._say(f"{run.model}, {run.num_params:,} parameters, on {run.device}")

    def step(self, progress: Progress) -> None:
        self._last = progress
        if time.monotonic() - self._shown < self.every:
            return
        total = "" if progress.total is None else f"/{progress.total}"
        shown = "  ".join(f"{entry.name} {entry.shown}" for entry in progress.entries)
        self._say(
            f"{progress.split:5} {progress.epoch}/{progress.epochs}  "
            f"batch {progress.iteration}{total}  {shown}"
        )

    def epoch(self, split: str, epoch: int, values: dict[str, float]) -> None:
        last = self._last
        shown = "  ".join(
            f"{name} {value:.4g} {self._units.get(name, '')}".rstrip()
            for name, value in values.items()
        )
        took = f"  {last.seconds:.1f} s" if last else ""
        of = f"/{last.epochs}" if last else ""
        self._say(f"{split:5} {epoch}{of}  {shown}{took}")

    def end(self, summary: str, reason: str | None) -> None:
        if reason:
            self._say(f"ended early: {reason}")
        if summary:
            self._say(summary)

    def _say(self, text: str) -> None:
        self._shown = time.monotonic()
        print(text, file=self.file or sys.stdout, flush=True)
