"""The folder of a training run: logs, their description, checkpoints."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from burnish.errors import BurnishError, InputError
from burnish.learner import EventStore, FileLogger, LearnerSummary, read_events
from burnish.learner.checkpoint import Checkpoint, Checkpointer, RunState
from burnish.learner.events import Entry, forget_after, holds_run, write_metrics
from burnish.learner.metric import Accuracy, Loss
from burnish.record import SafetensorsRecorder
from tests.fuzz.changes import changed_bytes, changed_json
from tests.fuzz.harness import Files as Held
from tests.fuzz.harness import one_line

NAMES = (
    "../x.log",
    "epoch-²/Loss.log",
    "epoch--1/Loss.log",
    "epoch-1/\x1b]0;t\x07.log",
)


class Files:
    """A run of two epochs."""

    def seeds(self) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            store, logger = EventStore([Loss(), Accuracy()]), FileLogger(folder)
            write_metrics(store, folder)
            for epoch in (1, 2):
                for step in (1, 2, 3):
                    entries = [Entry("Loss", 1 / step, 0.5), Entry("Accuracy", 50, 50)]
                    logger.step("train", epoch, step, entries)
                logger.epoch("valid", epoch, {"Loss": 0.5, "Accuracy": 50.0})
            keeper = Checkpointer(folder, [lambda *_: [1, 2]], SafetensorsRecorder())
            for epoch in (1, 2):
                held = {"a": np.ones(3, np.float32)}
                keeper.save(
                    Checkpoint(RunState(epoch, 0, 0), held, held, {"x": 1}), store
                )
            return [
                {
                    str(path.relative_to(folder)): path.read_bytes()
                    for path in folder.rglob("*")
                    if path.is_file()
                }
            ]

    def case(self, rng: random.Random, seeds: list[Any]) -> Held:
        files = dict(seeds[0])
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice(sorted(files))
            data = files[name]
            kind = rng.random()
            if name.endswith(".json") and kind < 0.8:
                files[name] = changed_json(data, rng)
            elif name.endswith(".log") and kind < 0.7:
                lines = data.splitlines(keepends=True) or [b"{}\n"]
                at = rng.randrange(len(lines))
                lines[at] = changed_json(lines[at], rng) + b"\n"
                files[name] = b"".join(lines)
            elif kind < 0.9:
                files[name] = changed_bytes(data, rng)
            else:
                files[f"train/{rng.choice(NAMES[1:])}"] = files.pop(name)
        return files

    def attempt(self, folder: Path, _out: Path) -> str:
        went = "read"
        keeper = Checkpointer(folder, [lambda *_: [1]], SafetensorsRecorder())
        for look in (
            lambda: read_events(folder),
            lambda: str(LearnerSummary.read(folder)),
            lambda: keeper.load(),
            lambda: keeper.load(1),
            lambda: forget_after(folder, 1, 1),
        ):
            try:
                look()
            except BurnishError as error:
                went = "refused"
                one_line(error)
        try:
            holds_run(folder)
        except InputError:
            went = "refused"
        return went
