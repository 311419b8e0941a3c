"""Learner: training and validation with metrics, checkpoints and resumption.

learner = Learner(
    model, optim.Adam(), 1e-3,
    step=Supervised(nn.CrossEntropyLoss()),
    metrics=[Accuracy(), Loss()], epochs=10, directory="runs/mnist",
)
trained = learner.fit(train_batches, valid_batches)
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from burnish.distributed import Group
from burnish.errors import InputError
from burnish.learner.artifacts import Artifacts
from burnish.learner.audience import Audience
from burnish.learner.checkpoint import Checkpoint, KeepLast, Strategy
from burnish.learner.display.renderer import Renderer, Run
from burnish.learner.display.summary import LearnerSummary
from burnish.learner.display.terminal import renderer_for_terminal
from burnish.learner.events import EventStore, MetricLogger
from burnish.learner.fitting import Fitting
from burnish.learner.interrupter import Interrupter
from burnish.learner.metric.base import Metric
from burnish.learner.metric.run import Loss
from burnish.learner.output import Step, own_step
from burnish.learner.parallel import Together
from burnish.learner.stopping import EarlyStopping
from burnish.nn import Module
from burnish.optim import Constant, Optimizer, Schedule
from burnish.plan.compiled import compile as burnish_compile
from burnish.record import DefaultRecorder, Recorder

_SPLITS = ("train", "valid")
_LATEST = KeepLast(2)
_LOSS = (Loss(),)


def _plan_options(
    asked: bool | str | Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """The options of `burnish.compile` that are asked for; None where steps are eager.

    Raises InputError for an option, or a value of one, that it does not take.
    """
    if asked is None or asked in (False, True):
        return {} if asked else None
    if not isinstance(asked, str | Mapping):
        raise InputError(
            f"Learner compile: expected True, a precision or a dict of options of "
            f"burnish.compile, got {asked!r}"
        )
    named: Mapping[str, Any] = {"precision": asked} if isinstance(asked, str) else asked
    options = dict(named)
    known = list(inspect.signature(burnish_compile).parameters)[1:]
    for name in options:
        if name not in known:
            raise InputError(
                f"Learner compile: expected options among {', '.join(known)}, "
                f"got {name!r}"
            )
    burnish_compile(_plan_options, **options)  # raises for values now, not in `fit`
    return options


class Learner:
    """Trains a model on batches, validates it, and keeps what a run needs to resume.

    model: trained in place, on the autodiff device of where it is.
    learning_rate: a number, or a schedule that is asked once an optimizer step.
    step, valid_step: what to do with a batch; left out, the model's own methods
    `train_step(batch)` and `valid_step(batch)`. `valid_step` is `step` by default.
    metrics: of training and validation, or `{"train": [...], "valid": [...]}`; the
    loss by default.
    directory: where the run is written; None writes nothing.
    checkpoints: which to keep; several strategies keep what any of them keeps.
    recorder: how they are written; None is `DefaultRecorder()`, from whose files a run
    resumes bit for bit. With another precision loaded values are rounded.
    accumulate: batches an optimizer step; their gradients are averaged.
    compile: whole steps, from batch to optimizer, are `burnish.compile`d: one plan
    for batches of one shape; up to the gradients with accumulate or several workers.
    "bf16", or another precision of `burnish.compile`, is that of the steps; a dict
    has any of its options: `{"precision": "bf16", "tolerance": 1e-5}`.
    resume: the epoch to continue after, or "last" for the latest checkpoint, if
    there is one; overwrite: start anew in a directory that holds a run.
    log: the application log's name in the directory; None installs none.
    workers: processes that share every batch; `distributed.group()`. Data loaders are
    parted among them, other iterables are this process's own; the first one writes.
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
        metrics: Sequence[Metric] | dict[str, Sequence[Metric]] = _LOSS,
        directory: str | os.PathLike[str] | None = None,
        checkpoints: Strategy | Sequence[Strategy] = _LATEST,
        recorder: Recorder | None = None,
        early_stopping: EarlyStopping | None = None,
        accumulate: int = 1,
        compile: bool | str | Mapping[str, Any] = False,  # noqa: A002 - the word for it
        renderer: Renderer | None = None,
        loggers: Sequence[MetricLogger] | None = None,
        interrupter: Interrupter | None = None,
        resume: int | Literal["last"] | None = None,
        overwrite: bool = False,
        log: str | None = "experiment.log",
        workers: Group | None = None,
    ):
        for name, value in (("epochs", epochs), ("accumulate", accumulate)):
            if value < 1:
                raise InputError(f"Learner {name}: expected 1 or more, got {value}")
        self.model = model
        self.optimizer = optimizer
        self.schedule = (
            learning_rate
            if isinstance(learning_rate, Schedule)
            else Constant(learning_rate)
        )
        self.step = step or own_step(model, "train_step")
        self.valid_step = valid_step or step
        self.epochs = epochs
        self.metrics = (
            {split: list(metrics.get(split, ())) for split in _SPLITS}
            if isinstance(metrics, dict)
            else {split: list(metrics) for split in _SPLITS}
        )
        for metric in (m for chosen in self.metrics.values() for m in chosen):
            if not isinstance(metric, Metric):
                raise InputError(
                    f"Learner metrics: expected metrics, such as Loss(), got {metric!r}"
                )
        self.accumulate = accumulate
        self.workers = workers or Group()
        self.compile = _plan_options(compile)
        self.artifacts = Artifacts(
            Path(directory) if directory and self.workers.is_first else None,
            [checkpoints] if callable(checkpoints) else checkpoints,
            recorder or DefaultRecorder(),
            resume,
            overwrite,
            log,
        )
        self.early_stopping = early_stopping
        self.renderer = renderer or renderer_for_terminal()
        self.loggers = loggers
        self.interrupter = interrupter or Interrupter()
        self.store = EventStore()

    @property
    def summary(self) -> LearnerSummary:
        """The table of the values measured so far."""
        return LearnerSummary.of(self.store)

    def fit(self, train: Iterable[Any], valid: Iterable[Any] | None = None) -> Module:
        """Train for all epochs; the trained model, on its inner device.

        train, valid: iterated once an epoch. Where they have an attribute `epoch`, it
        is set before, so that the order of batches depends on the epoch alone.
        """
        first = self.workers.is_first
        valid_step = self.valid_step
        if valid is not None and valid_step is None:
            valid_step = own_step(self.model, "valid_step")
        self.model.to(self.model.device.autodiff())
        self.interrupter.reset()
        together = Together(self.workers, self.model)
        every = [metric for split in _SPLITS for metric in self.metrics[split]]
        self.store, found = EventStore(every), None
        if first:
            self.store, found = self.artifacts.open(every)
        start = together.begin(found)
        self._take_up(start)
        loggers = [self.store, *(self.artifacts.loggers(self.loggers) if first else ())]
        audience = Audience(loggers, self.renderer if first else Renderer())
        fitting = Fitting(
            model=self.model,
            optimizer=self.optimizer,
            schedule=self.schedule,
            step=self.step,
            valid_step=valid_step,
            epochs=self.epochs,
            metrics=self.metrics,
            accumulate=self.accumulate,
            compile=self.compile,
            store=self.store,
            audience=audience,
            checkpointer=self.artifacts.checkpointer,
            early_stopping=self.early_stopping,
            interrupter=self.interrupter,
            together=together,
        )
        with ExitStack() as stack:
            stack.enter_context(self.artifacts.journal())
            stack.enter_context(self.interrupter.on_keyboard())
            stack.callback(self._close, audience)
            audience.renderer.start(
                Run.of(self.model, self.epochs, self.store.units, start.state.epoch + 1)
            )
            fitting.run(start, train, valid)
        return self.model.valid()

    def _take_up(self, start: Checkpoint) -> None:
        if start.model:
            self.model.load_state_dict(start.model)
            self.optimizer.load_state_dict(start.optim)
            self.schedule.load_state_dict(start.scheduler)

    def _close(self, audience: Audience) -> None:
        audience.end(str(self.summary), self.interrupter.reason)
