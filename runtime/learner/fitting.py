"""The loop of a learner: epochs of training and validation."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from burnish.autodiff import Gradients, Variable
from burnish.backend.cuda.graphs import live
from burnish.errors import InputError
from burnish.learner.audience import Audience
from burnish.learner.checkpoint import Checkpoint, Checkpointer, RunState
from burnish.learner.events import EventStore
from burnish.learner.interrupter import Interrupter
from burnish.learner.loop import Loop, moved, size_of
from burnish.learner.metric.base import Metric
from burnish.learner.output import Step, TrainOutput
from burnish.learner.parallel import Together
from burnish.learner.stopping import EarlyStopping
from burnish.learner.tracker import Tracker
from burnish.nn import Module
from burnish.optim import (
    GradientsAccumulator,
    GradientsParams,
    Optimizer,
    Schedule,
)
from burnish.optim.core.clip import are_finite
from burnish.plan.compiled import compile  # noqa: A004 - the word for it
from burnish.tensor import Tensor

log = logging.getLogger("burnish.learner")


@dataclass
class Fitting:
    """One run from where it starts to its last epoch."""

    model: Module
    optimizer: Optimizer
    schedule: Schedule
    step: Step
    valid_step: Step | None
    epochs: int
    metrics: dict[str, list[Metric]]
    accumulate: int
    compile: dict[str, Any] | None
    store: EventStore
    audience: Audience
    checkpointer: Checkpointer | None
    early_stopping: EarlyStopping | None
    interrupter: Interrupter
    together: Together

    def run(
        self, start: Checkpoint, train: Iterable[Any], valid: Iterable[Any] | None
    ) -> None:
        """Every epoch after `start`, whose state the model and the others have."""
        log.info("from epoch %d of %d", start.state.epoch + 1, self.epochs)
        for epoch in range(start.state.epoch + 1, self.epochs + 1):
            if not self._train(epoch, train, start):
                break
            start = Checkpoint(RunState(epoch), {}, {}, {})
            self.together.settle()
            if valid is not None:
                self._validate(epoch, valid)
            self._save(RunState(epoch))
            reason = self.early_stopping and self.early_stopping(self.store, epoch)
            if reason:
                self.interrupter.stop(reason)
            if self.together.stops(self.interrupter):
                break
        if self.interrupter.stopped:
            log.info("ended early: %s", self.interrupter.reason)

    def _train(self, epoch: int, batches: Iterable[Any], start: Checkpoint) -> bool:
        """One epoch from where `start` is; False when it was interrupted."""
        tracker = Tracker(self.metrics["train"], "train")
        sums = GradientsAccumulator()
        waiting, done = start.state.accumulated, start.state.iteration
        _take_up(start.rest, tracker, sums, self.together.is_first)
        batches = self.together.part(batches)
        loop = Loop("train", epoch, self.epochs, batches, done)
        self.together.restore(start.state.random)  # what was skipped drew nothing
        fast = self._planned_step
        for iteration, batch in loop:
            rate = self._rate()
            if fast is not None:
                run = fast if size_of(batch) else self._whole_step
                item = self._item(*run(moved(batch, self.model.device), rate))
                self.schedule.step()
                self._share(tracker, loop, batch, item, rate)
            else:
                item, gradients = self._gradients(batch)
                weight = self._share(tracker, loop, batch, item, rate)
                sums.accumulate(_scaled(gradients, weight))
                waiting += 1
            if waiting and (waiting == self.accumulate or iteration == loop.total):
                self._optimize(sums, waiting)
                waiting = 0
            if self.together.stops(self.interrupter):
                rest = _rest(tracker, self.together.summed(sums, 1))
                self._save(RunState(epoch - 1, iteration, waiting), rest)
                return False
        if not loop.iteration:
            raise InputError(
                f"training, epoch {epoch}: expected batches, got none; a generator "
                f"gives its batches once, a list or a DataLoader every epoch"
            )
        if waiting:
            self._optimize(sums, waiting)
        self._ended(loop, tracker)
        return True

    def _validate(self, epoch: int, batches: Iterable[Any]) -> None:
        tracker = Tracker(self.metrics["valid"], "valid")
        model, step = self.model.valid(), self.valid_step or self.step
        loop = Loop("valid", epoch, self.epochs, self.together.part(batches))
        for _, batch in loop:
            item = None
            if size_of(batch):
                item = step(model, moved(batch, model.device))
            self._share(tracker, loop, batch, item)
        self._ended(loop, tracker)

    def _train_step(self, batch: Any) -> tuple[Any, GradientsParams]:
        if not size_of(batch):  # other processes have the rest of the last batch
            return None, GradientsParams({})
        item = self.step(self.model, moved(batch, self.model.device))
        if isinstance(item, TrainOutput):
            item, gradients = item.item, item.gradients
        elif hasattr(item, "loss"):
            gradients = item.loss.backward()
        else:
            raise InputError(
                f"a training step returns a StepOutput, a TrainOutput or another "
                f"object with a loss, got {type(item).__name__}"
            )
        if isinstance(gradients, Gradients):
            gradients = GradientsParams.from_grads(gradients, self.model)
        return item, gradients

    def _gradients(self, batch: Any) -> tuple[Any, GradientsParams]:
        """`_train_step`, as a plan where steps are compiled."""
        if self._planned_gradients is None or not size_of(batch):
            return self._train_step(batch)
        *held, found = self._planned_gradients(moved(batch, self.model.device))
        arrays = {path: gradient.data for path, gradient in found.items()}
        return self._item(*held), GradientsParams(arrays)

    @property
    def _is_whole(self) -> bool:
        """Whether a batch is a step of the optimizer that one plan can have."""
        workers = self.together.workers
        return self.accumulate == 1 and (workers.size == 1 or workers.in_graphs)

    @functools.cached_property
    def _planned_step(self) -> Any:
        """`_whole_step` as plans, which all epochs share; None where it is in parts."""
        return self._planned(self._whole_step) if self._is_whole else None

    @functools.cached_property
    def _planned_gradients(self) -> Any:
        """`_gradient_step` as plans, where gradients are added up; None elsewhere."""
        return None if self._is_whole else self._planned(self._gradient_step)

    def _planned(self, function: Any) -> Any:
        """A function as plans with the options asked for; None where none is wanted."""
        return None if self.compile is None else compile(function, **self.compile)

    def _whole_step(self, batch: Any, rate: float) -> tuple[Any, Any]:
        """A batch, and the optimizer's step: the item's class, and what it holds."""
        item, gradients = self._train_step(batch)
        gradients = self.together.mean(gradients, size_of(batch))
        if self.together.workers.size == 1:  # a plan repeats what overflowed
            self.optimizer.step(rate, self.model, gradients)
        else:
            self._stepped(rate, gradients)
        return _held(item)

    def _gradient_step(self, batch: Any) -> tuple[Any, Any, dict[str, Any]]:
        """A batch: the item's class, what it holds, and gradients by path."""
        item, gradients = self._train_step(batch)
        place = self.model.device.inner()
        found = {
            path: g if isinstance(g, Variable) else Tensor.wrap(g, place)
            for path, g in gradients.items()
        }
        return *_held(item), found

    def _item(self, kind: Any, held: Any) -> Any:
        return held if kind is None else kind(**held)

    def _rate(self) -> float:
        """The rate of the optimizer step that this batch is for."""
        return self.schedule.at(self.schedule.count)

    def _optimize(self, sums: GradientsAccumulator, count: int) -> None:
        gradients = self.together.summed(sums, 1 / count)
        self._stepped(self.schedule.step(), gradients)

    def _stepped(self, rate: float, gradients: GradientsParams) -> None:
        """The optimizer's step, but for one whose scaled losses have overflowed."""
        device = self.model.device
        precision = (self.compile or {}).get("precision")
        is_scaled = precision == "fp16" and device.inner().kind == "cuda"
        skips = is_scaled and live.numbers() is None  # a graph skips by itself
        with device.computing():
            if not skips or are_finite(gradients):
                self.optimizer.step(rate, self.model, gradients)

    # --- logs and progress ---

    def _share(
        self,
        tracker: Tracker,
        loop: Loop,
        batch: Any,
        item: Any,
        rate: float | None = None,
    ) -> float:
        """Measure a batch, with the other processes; this part's weight in it."""
        moment = loop.moment(batch, rate)
        measured = {} if item is None else tracker.measure(item, moment)
        weight, parts = self.together.share(moment.batch_size, measured)
        self.audience.step(loop, tracker.add(parts))
        return weight

    def _ended(self, loop: Loop, tracker: Tracker) -> None:
        values = tracker.values()
        self.audience.epoch(loop, values)
        log.info("%s epoch %d: %s", loop.split, loop.epoch, values)

    def _save(self, state: RunState, rest: dict[str, Any] | None = None) -> None:
        state.random = self.together.random()
        if self.checkpointer is None:
            return
        checkpoint = Checkpoint(
            state,
            model=self.model.state_dict(),
            optim=self.optimizer.state_dict(),
            scheduler=self.schedule.state_dict(),
            rest=rest or {},
        )
        self.checkpointer.save(checkpoint, self.store)


def _held(item: Any) -> tuple[Any, Any]:
    """The class of a step's output, and its fields; None and itself for another."""
    if not dataclasses.is_dataclass(item):
        return None, item
    names = [field.name for field in dataclasses.fields(item)]
    return type(item), {name: getattr(item, name) for name in names}


def _scaled(gradients: GradientsParams, weight: float) -> GradientsParams:
    if weight == 1:
        return gradients
    return GradientsParams({path: g * weight for path, g in gradients.items()})


def _rest(tracker: Tracker, gradients: GradientsParams) -> dict[str, Any]:
    """The state of an unfinished epoch besides the model."""
    metrics = {f"metric.{k}": v for k, v in tracker.state_dict().items()}
    return metrics | {f"gradient.{k}": v for k, v in gradients.items()}


def _take_up(
    rest: dict[str, Any], tracker: Tracker, sums: GradientsAccumulator, first: bool
) -> None:
    parts: dict[str, dict[str, Any]] = {"metric": {}, "gradient": {}}
    for name, value in rest.items():
        kind, _, key = name.partition(".")
        parts[kind][key] = value
    tracker.load_state_dict(parts["metric"])
    if first:  # they are of all processes together
        sums.accumulate(GradientsParams(parts["gradient"]))
