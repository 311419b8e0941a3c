"""Checkpoints: the state of a run in files, and which of them are kept.

DIRECTORY/checkpoint/model-3.safetensors, optim-3.safetensors, scheduler-3.safetensors
and state-3.json, which names them and is written last: without it they do not count. In
the middle of an epoch the names are model-3-120 and so on: 3 epochs and 120 batches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from burnish import rng
from burnish._files.inside import inside
from burnish._files.shown import shown
from burnish.errors import InputError, RecordError
from burnish.learner.events import EventStore
from burnish.record import PrettyJsonRecorder, Recorder

Strategy: TypeAlias = Callable[[EventStore, Sequence[int]], Iterable[int]]
"""Called with the values so far and the saved epochs; gives those to keep."""

Moment: TypeAlias = tuple[int, int]

_PARTS = ("model", "optim", "scheduler", "rest")
_STATES = PrettyJsonRecorder()
_MOMENT = re.compile(r"state-([0-9]{1,18})(?:-([0-9]{1,18}))?\.json")


@dataclass(frozen=True)
class KeepLast:
    """The latest `count` checkpoints."""

    count: int = 2

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"KeepLast: expected 1 or more, got {self.count}")

    def __call__(self, store: EventStore, epochs: Sequence[int]) -> Iterable[int]:
        return sorted(epochs)[-self.count :]


@dataclass(frozen=True)
class KeepBest:
    """The checkpoint whose epoch has the best value of a metric.

    highest: which way is better; None asks the metric.
    """

    metric: str = "Loss"
    split: str = "valid"
    highest: bool | None = None

    def __call__(self, store: EventStore, epochs: Sequence[int]) -> Iterable[int]:
        best = store.find_epoch(self.metric, self.split, self.highest)
        return [] if best is None else [best]


def keep_all(store: EventStore, epochs: Sequence[int]) -> Iterable[int]:
    """Every checkpoint."""
    return epochs


@dataclass
class RunState:
    """The position of a run when it was saved.

    epoch: epochs that ended; iteration: batches of the next one that were done;
    random: the state of `burnish.rng`; accumulated: batches whose gradients wait.
    """

    epoch: int
    iteration: int = 0
    accumulated: int = 0
    random: Any = None
    reason: str | None = None


@dataclass
class Checkpoint:
    """The state that a run resumes from, as named arrays."""

    state: RunState
    model: dict[str, Any]
    optim: dict[str, Any]
    scheduler: dict[str, Any]
    rest: dict[str, Any] = field(default_factory=dict)
    """Gradients and metrics of an epoch that was not finished."""

    def as_dict(self) -> dict[str, Any]:
        """As a message to other processes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Checkpoint:
        """The checkpoint whose `as_dict` gave these fields."""
        return cls(RunState(**fields.pop("state")), **fields)


class Checkpointer:
    """Writes and reads the checkpoints of one run."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        keep: Iterable[Strategy],
        recorder: Recorder,
    ):
        self.directory = Path(directory) / "checkpoint"
        self.keep = tuple(keep)
        self.recorder = recorder

    def moments(self) -> list[Moment]:
        """The moments to resume from: (epochs, batches of the next one), in order."""
        found = []
        for path in self.directory.glob("state-*.json"):
            if moment := _MOMENT.fullmatch(path.name):
                found.append((int(moment[1]), int(moment[2] or 0)))
        return sorted(found)

    def save(self, checkpoint: Checkpoint, store: EventStore) -> None:
        """Write a checkpoint, then take away those that no strategy keeps."""
        self.directory.mkdir(parents=True, exist_ok=True)
        moment = (checkpoint.state.epoch, checkpoint.state.iteration)
        self._remove(moment)
        files = {}
        for part in _PARTS:
            if state := getattr(checkpoint, part):
                file = self.directory / f"{part}-{_key(moment)}"
                files[part] = self.recorder.record(state, file).name
        _STATES.record(
            {"files": files, "state": vars(checkpoint.state)}, self._state(moment)
        )
        saved = self.moments()
        whole = [epoch for epoch, iteration in saved if not iteration]
        chosen = {epoch for strategy in self.keep for epoch in strategy(store, whole)}
        for old in saved:
            if old != moment and (old[1] or old[0] not in chosen):
                self._remove(old)

    def load(self, epoch: int | None = None) -> Checkpoint:
        """The checkpoint of the end of an epoch, or the latest one of all.

        Raises RecordError where there is none, and for damaged or missing files.
        """
        saved = self.moments()
        moment = (epoch, 0) if epoch is not None else (saved or [(0, 0)])[-1]
        if moment not in saved:
            found = ", ".join(map(_key, saved)) or "none"
            raise RecordError(
                f"{self.directory}: expected a checkpoint of epoch {moment[0]}, "
                f"found {found}"
            )
        state, files = self._page(self._state(moment))
        parts: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
        for part, name in files.items():
            parts[part] = self._part(name)
        return Checkpoint(state, **parts)

    def _page(self, path: Path) -> tuple[RunState, dict[str, str]]:
        """Where the run was, and the names of the files that belong to it."""
        page = _STATES.load(path)
        try:
            state, files = RunState(**page["state"]), dict(page["files"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(
                f"{path}: expected the state of a run and its files, got "
                f"{shown(page)} ({type(error).__name__})"
            ) from None
        counts = (state.epoch, state.iteration, state.accumulated)
        if not all(type(count) is int and 0 <= count < 2**63 for count in counts):
            raise RecordError(f"{path}: expected counts of a run, got {shown(counts)}")
        random = state.random
        if random is not None and not (
            isinstance(random, list) and random and all(map(rng.is_state, random))
        ):
            raise RecordError(
                f"{path}: expected states of random numbers, got {shown(random)}"
            )
        for part, name in files.items():
            if part not in _PARTS or not isinstance(name, str):
                raise RecordError(
                    f"{path}: expected names of files for {', '.join(_PARTS)}, got "
                    f"{shown({part: name})}"
                )
        return state, files

    def _part(self, name: str) -> dict[str, Any]:
        path = Path(inside(self.directory, name, str(self.directory)))
        if self.recorder.path(path) != path:
            raise RecordError(
                f"{path}: expected a name that ends in {self.recorder.suffix}; go on "
                f"with the recorder that this checkpoint was written with"
            )
        if not path.is_file():
            raise RecordError(f"{path}: expected a file of this checkpoint, found none")
        loaded: dict[str, Any] = self.recorder.load(path)
        return loaded

    def forget_after(self, epoch: int, iteration: int) -> None:
        """Take away the checkpoints after a moment, to write them again."""
        for later in self.moments():
            if later > (epoch, iteration):
                self._remove(later)

    def forget(self) -> None:
        """Take away every checkpoint of a run; other files stay."""
        for moment in self.moments():
            self._remove(moment)
        with suppress(OSError):  # somebody's files are there
            self.directory.rmdir()

    def _remove(self, moment: Moment) -> None:
        self._state(moment).unlink(missing_ok=True)
        for part in _PARTS:
            for suffix in self._suffixes():
                file = self.directory / f"{part}-{_key(moment)}{suffix}"
                file.unlink(missing_ok=True)

    def _suffixes(self) -> set[str]:
        """Of this recorder's files and of those of a run that had another one."""
        others = {kind.format.suffix for kind in Recorder.__subclasses__()}
        return {self.recorder.suffix} | others

    def _state(self, moment: Moment) -> Path:
        return self.directory / f"state-{_key(moment)}.json"


def _key(moment: Moment) -> str:
    epoch, iteration = moment
    return f"{epoch}-{iteration}" if iteration else f"{epoch}"
