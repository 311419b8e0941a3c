"""Learner: training and validation with metrics, checkpoints and a way back.

learner = Learner(
    model, optim.Adam(), 1e-3,
    step=Supervised(nn.CrossEntropyLoss()),
    metrics=[Accuracy(), Loss()], epochs=10, directory="runs/mnist",
)
trained = learner.fit(train_batches, valid_batches)
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from burnish import rng
from burnish.autodiff import Gradients
from burnish.errors import InputError
from burnish.learner.checkpoint import (
    Checkpoint,
    Checkpointer,
    KeepLast,
    RunState,
    Strategy,
)
from burnish.learner.events import (
    EventStore,
    FileLogger,
    MetricLogger,
    forget_after,
    read_events,
    write_metrics,
)
from burnish.learner.interrupter import Interrupter
from burnish.learner.journal import journal
from burnish.learner.loop import Loop, moved
from burnish.learner.metric.base import Metric, Moment
from burnish.learner.output import Step, TrainOutput, own_step
from burnish.learner.renderer import Renderer, Run
from burnish.learner.stopping import EarlyStopping
from burnish.learner.summary import LearnerSummary
from burnish.learner.terminal import renderer_for_terminal
from burnish.learner.tracker import Tracker
from burnish.nn import Module
from burnish.optim import (
    Constant,
    GradientsAccumulator,
    GradientsParams,
    Optimizer,
    Schedule,
)

log = logging.getLogger("burnish.learner")

_SPLITS = ("train", "valid")
_LATEST = KeepLast(2)
_OWN = ("checkpoint", "train", "valid", "metrics.json", "experiment.log")


class Learner:
    """Trains a model on batches, validates it, and keeps what is needed to go on.

    model: trained in place, on the autodiff device of where it is.
    learning_rate: a number, or a schedule that is asked once an optimizer step.
    step, valid_step: what to do with a batch; left out, the model's own methods
    `train_step(batch)` and `valid_step(batch)`. `valid_step` is `step` by default.
    metrics: of training and validation, or `{"train": [...], "valid": [...]}`.
    directory: where the run is written; None writes nothing.
    checkpoints: which to keep; several strategies keep what any of them keeps.
    accumulate: batches an optimizer step; their gradients are averaged.
    resume: the epoch to go on after, or "last" for the latest checkpoint, where there
    is one; overwrite: start anew in a directory that holds a run.
    log: the application log's name in the directory; None installs none.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        learning_rate: float | Schedule,
        *,
        step: Step | None = None,
        valid_step: Step | None = None,
        epochs: int = 1,
        metrics: Sequence[Metric] | dict[str, Sequence[Metric]] = (),
        directory: str | os.PathLike[str] | None = None,
        checkpoints: Strategy | Sequence[Strategy] = _LATEST,
        early_stopping: EarlyStopping | None = None,
        accumulate: int = 1,
        renderer: Renderer | None = None,
        loggers: Sequence[MetricLogger] | None = None,
        interrupter: Interrupter | None = None,
        resume: int | Literal["last"] | None = None,
        overwrite: bool = False,
        log: str | None = "experiment.log",
    ):
        for name, value in (("epochs", epochs), ("accumulate", accumulate)):
            if value < 1:
                raise InputError(f"Learner {name}: expected 1 or more, got {value}")
        self.model = model
        self.optimizer = optimizer
        self.schedule = (
            Constant(learning_rate)
            if isinstance(learning_rate, int | float)
            else learning_rate
        )
        self.step = step
        self.valid_step = valid_step or step
        self.epochs = epochs
        self.metrics = (
            {split: list(metrics.get(split, ())) for split in _SPLITS}
            if isinstance(metrics, dict)
            else {split: list(metrics) for split in _SPLITS}
        )
        self.directory = None if directory is None else Path(directory)
        keep = [checkpoints] if callable(checkpoints) else checkpoints
        self.checkpointer = (
            Checkpointer(self.directory, keep) if self.directory and keep else None
        )
        self.early_stopping = early_stopping
        self.accumulate = accumulate
        self.renderer = renderer_for_terminal() if renderer is None else renderer
        self.loggers = loggers
        self.interrupter = interrupter or Interrupter()
        self.resume = resume
        self.overwrite = overwrite
        self.log = log
        self.store = EventStore()

    @property
    def summary(self) -> LearnerSummary:
        """The table of what was measured so far."""
        return LearnerSummary.of(self.store)

    def fit(self, train: Iterable[Any], valid: Iterable[Any] | None = None) -> Module:
        """Train for all epochs; the trained model, on its inner device.

        train, valid: iterated once an epoch. Where they have an attribute `epoch`, it
        is set before, so that the order of batches depends on the epoch alone.
        """
        self.model.to(self.model.device.autodiff())
        self.interrupter.reset()
        with ExitStack() as stack:
            start = self._open()
            if self.directory and self.log:
                stack.enter_context(journal(self.directory / self.log))
            stack.enter_context(self.interrupter.on_keyboard())
            stack.callback(self._close)
            self.renderer.start(
                Run.of(self.model, self.epochs, self.store.units, start.state.epoch + 1)
            )
            self._epochs(start, train, valid)
        return self.model.valid()

    # --- the loop ---

    def _epochs(
        self, start: Checkpoint, train: Iterable[Any], valid: Iterable[Any] | None
    ) -> None:
        log.info("from epoch %d of %d", start.state.epoch + 1, self.epochs)
        for epoch in range(start.state.epoch + 1, self.epochs + 1):
            if not self._train(epoch, train, start):
                break
            start = Checkpoint(RunState(epoch), {}, {}, {})
            if valid is not None:
                self._validate(epoch, valid)
            reason = self.early_stopping and self.early_stopping(self.store, epoch)
            self._save(RunState(epoch))
            if reason:
                self.interrupter.stop(reason)
            if self.interrupter.stopped:
                break

    def _train(self, epoch: int, batches: Iterable[Any], start: Checkpoint) -> bool:
        """One epoch from where `start` is; False when it was interrupted."""
        tracker = Tracker(self.metrics["train"], "train")
        sums = GradientsAccumulator()
        waiting, done = start.state.accumulated, start.state.iteration
        _take_up(start.rest, tracker, sums)
        loop = Loop("train", epoch, self.epochs, batches, done)
        if start.state.random is not None:  # loading what was done before drew nothing
            rng.restore(start.state.random)
        for iteration, batch in loop:
            item, gradients = self._train_step(batch)
            sums.accumulate(gradients)
            waiting += 1
            if waiting == self.accumulate or iteration == loop.total:
                self._optimize(sums, waiting)
                waiting = 0
            rate = self.schedule.at(max(self.schedule.count - 1, 0))
            self._measured(tracker, item, loop.moment(batch, rate), loop)
            if self.interrupter.stopped:
                self._save(
                    RunState(epoch - 1, iteration, waiting), _rest(tracker, sums)
                )
                return False
        if waiting:
            self._optimize(sums, waiting)
        self._ended("train", epoch, tracker)
        return True

    def _validate(self, epoch: int, batches: Iterable[Any]) -> None:
        tracker = Tracker(self.metrics["valid"], "valid")
        model = self.model.valid()
        step = self.valid_step or own_step(self.model, "valid_step")
        loop = Loop("valid", epoch, self.epochs, batches)
        for _, batch in loop:
            item = step(model, moved(batch, model.device))
            self._measured(tracker, item, loop.moment(batch), loop)
        self._ended("valid", epoch, tracker)

    def _train_step(self, batch: Any) -> tuple[Any, GradientsParams]:
        step = self.step or own_step(self.model, "train_step")
        item = step(self.model, moved(batch, self.model.device))
        if isinstance(item, TrainOutput):
            item, gradients = item.item, item.gradients
        else:
            gradients = item.loss.backward()
        if isinstance(gradients, Gradients):
            gradients = GradientsParams.from_grads(gradients, self.model)
        return item, gradients

    def _optimize(self, sums: GradientsAccumulator, count: int) -> None:
        gradients = sums.grads()
        if count > 1:
            gradients = GradientsParams({p: g / count for p, g in gradients.items()})
        self.optimizer.step(self.schedule.step(), self.model, gradients)

    # --- what is written and shown ---

    def _measured(
        self, tracker: Tracker, item: Any, moment: Moment, loop: Loop
    ) -> None:
        entries = tracker.update(item, moment)
        for logger in self._loggers:
            logger.step(moment.split, moment.epoch, moment.iteration, entries)
        self.renderer.step(loop.progress(entries))

    def _ended(self, split: str, epoch: int, tracker: Tracker) -> None:
        values = tracker.values()
        for logger in self._loggers:
            logger.epoch(split, epoch, values)
        self.renderer.epoch(split, epoch, values)
        log.info("%s epoch %d: %s", split, epoch, values)

    def _save(self, state: RunState, rest: dict[str, Any] | None = None) -> None:
        if self.checkpointer is None:
            return
        state.random = rng.state()
        checkpoint = Checkpoint(
            state,
            model=self.model.state_dict(),
            optim=self.optimizer.state_dict(),
            scheduler=self.schedule.state_dict(),
            rest=rest or {},
        )
        self.checkpointer.save(checkpoint, self.store)

    def _open(self) -> Checkpoint:
        """Make the directory ready; where the run starts."""
        start = Checkpoint(RunState(0), {}, {}, {})
        self.store = EventStore()
        if self.directory is not None:
            start = self._continued(self.directory) or start
        self.store.register(m for split in _SPLITS for m in self.metrics[split])
        loggers = self.loggers
        if self.directory is not None:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_metrics(self.store, self.directory)
            if loggers is None:
                loggers = [FileLogger(self.directory)]
        self._loggers: list[MetricLogger] = [self.store, *(loggers or ())]
        return start

    def _continued(self, directory: Path) -> Checkpoint | None:
        held = [name for name in _OWN if (directory / name).exists()]
        if self.resume is None:
            if held and not self.overwrite:
                raise InputError(
                    f"{directory} holds a run: give resume='last' to go on with it, "
                    f"overwrite=True to start anew, or another directory"
                )
            for name in held:
                path = directory / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            return None
        if self.checkpointer is None:
            raise InputError("resume: expected checkpoints to be kept, got none")
        if self.resume == "last" and not self.checkpointer.moments():
            return None
        start = self.checkpointer.load(None if self.resume == "last" else self.resume)
        self.model.load_state_dict(start.model)
        self.optimizer.load_state_dict(start.optim)
        self.schedule.load_state_dict(start.scheduler)
        self.checkpointer.forget_after(start.state.epoch, start.state.iteration)
        forget_after(directory, start.state.epoch, start.state.iteration)
        self.store = read_events(directory)
        return start

    def _close(self) -> None:
        for logger in self._loggers:
            logger.close()
        self.renderer.end(str(self.summary), self.interrupter.reason)


def _rest(tracker: Tracker, sums: GradientsAccumulator) -> dict[str, Any]:
    """What an epoch that was not finished holds beside the model."""
    metrics = {f"metric.{k}": v for k, v in tracker.state_dict().items()}
    return metrics | {f"gradient.{k}": v for k, v in sums.grads().items()}


def _take_up(
    rest: dict[str, Any], tracker: Tracker, sums: GradientsAccumulator
) -> None:
    parts: dict[str, dict[str, Any]] = {"metric": {}, "gradient": {}}
    for name, value in rest.items():
        kind, _, key = name.partition(".")
        parts[kind][key] = value
    tracker.load_state_dict(parts["metric"])
    sums.accumulate(GradientsParams(parts["gradient"]))
