"""Evaluator: a trained model's metrics on test sets, one or several by name.

values = Evaluator(model, step=Supervised(loss), metrics=[Accuracy()]).eval(batches)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from burnish.errors import InputError
from burnish.learner.audience import Audience
from burnish.learner.display.renderer import Renderer, Run
from burnish.learner.display.summary import LearnerSummary
from burnish.learner.display.terminal import renderer_for_terminal
from burnish.learner.events import EventStore, FileLogger, MetricLogger, write_metrics
from burnish.learner.loop import Loop, moved
from burnish.learner.metric.base import Metric
from burnish.learner.output import Step, own_step
from burnish.learner.tracker import Tracker
from burnish.nn import Module


class Evaluator:
    """Runs a model over test batches, recording nothing for gradients.

    step: what to do with a batch; left out, the model's method `valid_step(batch)`.
    directory: where values are written: DIRECTORY/test/epoch-1/Accuracy.log, for
    named sets DIRECTORY/NAME/test/...
    """

    def __init__(
        self,
        model: Module,
        *,
        metrics: Sequence[Metric],
        step: Step | None = None,
        directory: str | os.PathLike[str] | None = None,
        renderer: Renderer | None = None,
    ):
        self.model = model.valid()
        self.metrics = list(metrics)
        self.step = own_step(model, "valid_step") if step is None else step
        self.directory = None if directory is None else Path(directory)
        self.renderer = renderer_for_terminal() if renderer is None else renderer

    def eval(self, batches: Iterable[Any]) -> dict[str, float]:
        """Each metric of all batches."""
        return self._eval(batches, self.directory)

    def eval_all(
        self, sets: Mapping[str, Iterable[Any]]
    ) -> dict[str, dict[str, float]]:
        """Each metric of every named set."""
        found = {}
        for name, batches in sets.items():
            if not name or Path(name).name != name:
                raise InputError(
                    f"eval_all: expected names that can name a folder, got {name!r}"
                )
            found[name] = self._eval(
                batches, None if self.directory is None else self.directory / name
            )
        return found

    def _eval(self, batches: Iterable[Any], directory: Path | None) -> dict[str, float]:
        store = EventStore(self.metrics)
        loggers: list[MetricLogger] = [store]
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            write_metrics(store, directory)
            loggers.append(FileLogger(directory, new=True))
        audience = Audience(loggers, self.renderer)
        self.renderer.start(Run.of(self.model, epochs=1, units=store.units))
        tracker, loop = Tracker(self.metrics, "test"), Loop("test", 1, 1, batches)
        try:
            for _, batch in loop:
                item = self.step(self.model, moved(batch, self.model.device))
                entries = tracker.add([tracker.measure(item, loop.moment(batch))])
                audience.step(loop, entries)
            values = tracker.values()
            audience.epoch(loop, values)
        finally:
            audience.end(str(LearnerSummary.of(store)), None)
        return values
