"""The files of a run's directory, and the state of an interrupted run.

DIRECTORY/experiment.log, metrics.json, checkpoint/, train/epoch-1/Loss.log, valid/...
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from burnish.errors import InputError
from burnish.learner.checkpoint import Checkpoint, Checkpointer, Strategy
from burnish.learner.events import (
    EventStore,
    FileLogger,
    MetricLogger,
    forget_after,
    forget_run,
    holds_run,
    read_events,
    write_metrics,
)
from burnish.learner.journal import journal
from burnish.learner.metric.base import Metric
from burnish.record import Recorder


@dataclass(frozen=True)
class Artifacts:
    """The files of one run; nothing is written where `directory` is None."""

    directory: Path | None
    keep: Sequence[Strategy]
    recorder: Recorder
    resume: int | Literal["last"] | None
    overwrite: bool
    log: str | None

    @property
    def checkpointer(self) -> Checkpointer | None:
        """The checkpointer; None where no checkpoints are kept."""
        if self.directory is None or not self.keep:
            return None
        return Checkpointer(self.directory, self.keep, self.recorder)

    def open(self, metrics: Sequence[Metric]) -> tuple[EventStore, Checkpoint | None]:
        """Prepare the directory: the run's events, and a checkpoint to resume from."""
        store, start = EventStore(), None
        if self.resume is not None:
            start = self._latest()
        if self.directory is not None:
            if self.resume is None:
                self._clear(self.directory)
            if start is not None:
                epoch, iteration = start.state.epoch, start.state.iteration
                forget_after(self.directory, epoch, iteration)
                store = read_events(self.directory)
        store.register(metrics)
        if self.directory is not None:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_metrics(store, self.directory)
        return store, start

    def loggers(self, given: Sequence[MetricLogger] | None) -> list[MetricLogger]:
        """Where values are written: as given, else to files."""
        if given is None and self.directory is not None:
            return [FileLogger(self.directory)]
        return list(given or ())

    def journal(self) -> AbstractContextManager[None]:
        """The application log while a run goes."""
        if self.directory is None or self.log is None:
            return nullcontext()
        return journal(self.directory / self.log)

    def _clear(self, directory: Path) -> None:
        written = Checkpointer(directory, self.keep, self.recorder)
        run = holds_run(directory)
        if written.moments() and not run:
            raise InputError(
                f"{directory} holds checkpoints and no metrics.json, which would say "
                f"that a run wrote them: choose another directory"
            )
        if run and not self.overwrite:
            raise InputError(
                f"{directory} holds a run: give resume='last' to go on with it, "
                f"overwrite=True to start anew, or another directory"
            )
        if run:
            written.forget()
            forget_run(directory)
            if self.log:
                (directory / self.log).unlink(missing_ok=True)

    def _latest(self) -> Checkpoint | None:
        checkpointer = self.checkpointer
        if checkpointer is None:
            raise InputError(
                "resume: expected a directory and checkpoints to be kept, got none"
            )
        if self.resume == "last" and not checkpointer.moments():
            return None
        start = checkpointer.load(None if self.resume == "last" else self.resume)
        checkpointer.forget_after(start.state.epoch, start.state.iteration)
        return start
