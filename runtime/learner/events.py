"""Measured values, step by step and epoch by epoch; in memory and in files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from burnish._files import jsontext
from burnish._files.atomic import atomic_write
from burnish._files.budget import Budget
from burnish._files.inside import inside
from burnish._files.shown import shown
from burnish.errors import InputError, RecordError
from burnish.learner.metric.base import Metric

SPLITS = ("train", "valid", "test")
_METRICS = "metrics.json"
_DIRECTION = (bool, type(None))
_AFTER_STEP, _AFTER_EPOCH = {"iteration", "value", "running"}, {"epoch", "value"}
_COUNTS, _LARGEST = ("iteration", "epoch"), 2**63
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One metric after one batch: the batch's value, and the epoch's so far."""

    name: str
    value: float
    running: float
    shown: str = ""


class MetricLogger(Protocol):
    """Where measured values go; a run has any number of these."""

    def step(
        self, split: str, epoch: int, iteration: int, entries: Sequence[Entry]
    ) -> None: ...

    def epoch(self, split: str, epoch: int, values: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class EventStore:
    """The values of a run, to be asked for; a metric logger in memory.

    higher_is_better: the direction of each metric by its name, None where neither is.
    """

    def __init__(self, metrics: Iterable[Metric] = ()):
        self.higher_is_better: dict[str, bool | None] = {}
        self.units: dict[str, str] = {}
        self._steps: dict[tuple[str, int, str], list[tuple[int, float]]] = {}
        self._epochs: dict[tuple[str, str], dict[int, float]] = {}
        self.register(metrics)

    def register(self, metrics: Iterable[Metric]) -> None:
        """Remember which way is up for these metrics."""
        for metric in metrics:
            self.higher_is_better[metric.name] = metric.higher_is_better
            self.units[metric.name] = metric.unit

    def step(
        self, split: str, epoch: int, iteration: int, entries: Sequence[Entry]
    ) -> None:
        for entry in entries:
            key = (split, epoch, entry.name)
            self._steps.setdefault(key, []).append((iteration, entry.value))

    def epoch(self, split: str, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._epochs.setdefault((split, name), {})[epoch] = value

    def close(self) -> None:
        """Nothing to do: the values stay."""

    def metrics(self, split: str) -> list[str]:
        """The names of the metrics measured on a split."""
        found = [name for kind, name in self._epochs if kind == split]
        order = list(self.units)
        return sorted(found, key=lambda n: order.index(n) if n in order else len(order))

    def steps(self, name: str, epoch: int, split: str) -> list[tuple[int, float]]:
        """(iteration, value of that batch) of one epoch."""
        return self._steps.get((split, epoch, name), [])

    def epochs(self, name: str, split: str) -> dict[int, float]:
        """The metric's value of each epoch that ended."""
        return self._epochs.get((split, name), {})

    def find_metric(self, name: str, epoch: int, split: str = "valid") -> float | None:
        """A metric's value of one epoch; None where there is none."""
        return self.epochs(name, split).get(epoch)

    def find_epoch(
        self, name: str, split: str = "valid", highest: bool | None = None
    ) -> int | None:
        """The epoch with the best value, the first of equals; None without values.

        highest: which way is better; None asks the metric itself.
        """
        sign = -1 if self.direction(name, highest) else 1
        values = self.epochs(name, split)
        known = {e: v for e, v in values.items() if v == v}
        return min(known, key=lambda e: (sign * known[e], e)) if known else None

    def direction(self, name: str, highest: bool | None = None) -> bool:
        """Whether higher values of a metric are better."""
        if highest is None:
            highest = self.higher_is_better.get(name)
        if highest is None:
            known = [n for n, way in self.higher_is_better.items() if way is not None]
            raise InputError(
                f"best {name!r}: expected one of the metrics that have a better "
                f"direction, {known}, or highest=True or False"
            )
        return highest


class FileLogger:
    """Values as lines of JSON: DIRECTORY/train/epoch-1/Accuracy.log.

    new: a file that is there already is written anew, not gone on with.
    """

    def __init__(self, directory: str | os.PathLike[str], new: bool = False):
        self.directory = Path(directory)
        self._mode = "w" if new else "a"
        self._open: dict[Path, IO[str]] = {}

    def step(
        self, split: str, epoch: int, iteration: int, entries: Sequence[Entry]
    ) -> None:
        for entry in entries:
            line = {
                "iteration": iteration,
                "value": entry.value,
                "running": entry.running,
            }
            self._write(split, epoch, entry.name, line)

    def epoch(self, split: str, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._write(split, epoch, name, {"epoch": epoch, "value": value})
        self.close()

    def close(self) -> None:
        """Flush written values to the disk."""
        for file in self._open.values():
            file.close()
        self._open = {}

    def _write(self, split: str, epoch: int, name: str, line: dict[str, Any]) -> None:
        below = f"{split}/epoch-{epoch}/{name}.log"
        path = self.directory / below
        if path not in self._open:
            inside(self.directory, below, str(self.directory))
            path.parent.mkdir(parents=True, exist_ok=True)
            _cut_torn(path)
            self._open[path] = path.open(self._mode, encoding="utf-8")
        self._open[path].write(json.dumps(line) + "\n")


def write_metrics(store: EventStore, directory: Path) -> None:
    """Write what `read_events` needs besides the values: units and directions."""
    described = {
        name: {"unit": store.units[name], "higher_is_better": way}
        for name, way in store.higher_is_better.items()
    }
    with atomic_write(directory / _METRICS) as file:
        file.write(json.dumps(described, indent=2).encode())


def holds_run(directory: Path) -> bool:
    """Whether a run wrote to a directory: its metrics.json says so.

    Raises InputError where a file of that name is something else.
    """
    path = directory / _METRICS
    if not path.exists():
        return False
    try:
        _described(path)
    except (OSError, RecordError):
        raise InputError(
            f"{path} is not the file of a run: choose another directory"
        ) from None
    return True


def _described(path: Path) -> dict[str, dict[str, Any]]:
    """The unit and the direction of every metric, as `write_metrics` leaves them."""
    page = jsontext.read(path)
    for each in page.values() if isinstance(page, dict) else (None,):
        kinds = each if isinstance(each, dict) else {}
        unit, way = kinds.get("unit"), kinds.get("higher_is_better", 0)
        if len(kinds) != 2 or type(unit) is not str or type(way) not in _DIRECTION:
            raise RecordError(
                f"{path}: expected a unit and a direction for each metric, got "
                f"{shown(each)}"
            )
    described: dict[str, dict[str, Any]] = page
    return described


def forget_run(directory: Path) -> None:
    """Take away the values that a run wrote, by name; other files stay."""
    for _, _, path in list(_logs(directory)):
        path.unlink()
        _remove_empty(path.parent, path.parent.parent)
    (directory / _METRICS).unlink()


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with suppress(OSError):  # somebody's files are there
            folder.rmdir()


def read_events(directory: str | os.PathLike[str]) -> EventStore:
    """The values of a run from its directory, finished or not.

    A line that was not written to its end is passed over. Raises RecordError where
    there is no run.
    """
    folder, store = Path(directory), EventStore()
    try:
        described = _described(folder / _METRICS)
    except (FileNotFoundError, NotADirectoryError):
        raise RecordError(
            f"{folder}: expected the directory of a run, found no {_METRICS}"
        ) from None
    for name, each in described.items():
        store.higher_is_better[name] = each["higher_is_better"]
        store.units[name] = each["unit"]
    for split, epoch, path in _logs(folder):
        for line in _lines(path):
            if line.keys() == _AFTER_EPOCH:
                store.epoch(split, epoch, {path.stem: line["value"]})
            else:
                entry = Entry(path.stem, line["value"], line["running"])
                store.step(split, epoch, line["iteration"], [entry])
    return store


def forget_after(directory: Path, epoch: int, iteration: int) -> None:
    """Remove what a run wrote after one moment, to write it again.

    iteration: batches of the following epoch that stay; 0 for none.
    """
    for split, found, path in list(_logs(directory)):
        if found <= epoch:
            continue
        if found > epoch + 1 or not iteration or split != "train":
            path.unlink()
            _remove_empty(path.parent)
            continue
        kept = [
            line
            for line in _lines(path)
            if line.keys() == _AFTER_STEP and 0 < line["iteration"] <= iteration
        ]
        with atomic_write(path) as file:
            file.write("".join(json.dumps(line) + "\n" for line in kept).encode())


def _logs(directory: Path) -> Iterator[tuple[str, int, Path]]:
    for split in SPLITS:
        found = []
        for path in (directory / split).glob("epoch-*/*.log"):
            if number := re.fullmatch("epoch-([0-9]{1,18})", path.parent.name):
                inside(directory, str(path.relative_to(directory)), str(directory))
                found.append((int(number[1]), path))
        for epoch, path in sorted(found):
            yield split, epoch, path


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metric's file; an incomplete last line is skipped.

    Raises RecordError with the line that is none of `FileLogger`.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if not text.endswith(b"\n"):
                return
            where = f"{path}, line {number}"
            line = jsontext.parse(text, Budget(len(text), where))
            keys = line.keys() if isinstance(line, dict) else ()
            counts = [line.get(key, 0) for key in _COUNTS] if keys else [None]
            numbers = line.values() if keys in (_AFTER_STEP, _AFTER_EPOCH) else [None]
            whole = all(type(n) is int and 0 <= n < _LARGEST for n in counts)
            if not (whole and all(map(_is_number, numbers))):
                raise RecordError(
                    f"{where}: expected a metric's values, got {shown(line)}"
                )
            yield line


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < _LARGEST)


def _cut_torn(path: Path) -> None:
    """Take away a last line that was not written to its end, so that none joins it."""
    with suppress(FileNotFoundError), path.open("rb+") as file:
        at = file.seek(0, os.SEEK_END)
        while at:
            start = max(0, at - _PIECE)
            file.seek(start)
            if (end := file.read(at - start).rfind(b"\n")) >= 0:
                file.truncate(start + end + 1)
                return
            at = start
        file.truncate(0)
