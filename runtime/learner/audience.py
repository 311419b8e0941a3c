"""Observers of a run: metric loggers and a renderer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from burnish.learner.display.renderer import Renderer
from burnish.learner.events import Entry, MetricLogger
from burnish.learner.loop import Loop


@dataclass(frozen=True)
class Audience:
    """Tells every logger, then the renderer."""

    loggers: Sequence[MetricLogger]
    renderer: Renderer

    def step(self, loop: Loop, entries: Sequence[Entry]) -> None:
        """One batch, and the loop's progress after it."""
        for logger in self.loggers:
            logger.step(loop.split, loop.epoch, loop.iteration, entries)
        self.renderer.step(loop.progress(entries))

    def epoch(self, loop: Loop, values: dict[str, float]) -> None:
        """The end of the loop's epoch."""
        for logger in self.loggers:
            logger.epoch(loop.split, loop.epoch, values)
        self.renderer.epoch(loop.split, loop.epoch, values)

    def end(self, summary: str, reason: str | None) -> None:
        """The end of the run, after an error too."""
        for logger in self.loggers:
            logger.close()
        self.renderer.end(summary, reason)
