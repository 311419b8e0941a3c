"""Runs a subject's files in this process, under limits; counts what became of them."""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.harness.limited import ADDRESS_SPACE, FILES, Watch

Files = Mapping[str, bytes]
"""By their names in a folder."""

MEGABYTES, TIMES = 64, 10
SECONDS = 6.0  # of processor time: the audit hooks take most of it; one for a megabyte
_TOGETHER = 25  # files of which memory is measured together
_ATTEMPTS = 3  # a busy machine makes a file slow once, not every time


class Subject(Protocol):
    """A reader, and files for it."""

    def seeds(self) -> list[Any]:
        """The seeds from which files are made."""
        ...

    def case(self, rng: random.Random, seeds: list[Any]) -> Files:
        """The files of one number."""
        ...

    def attempt(self, folder: Path, out: Path) -> str:
        """What became of them, in a word; any exception is a problem.

        out: a folder for what is written.
        """
        ...


def one_line(error: Exception) -> None:
    """Messages stay on their line, whatever the file's text is."""
    assert "\n" not in str(error), str(error)


class ProblemError(Exception):
    """A file did what none may."""


class TooLongError(BaseException):
    """A file takes more than its time; nobody catches this on the way."""


class Runner:
    """Examines the files of a subject, in this process: limits stay set."""

    def __init__(self, subject: Subject, folder: Path):
        self.subject, self.folder, self.out = subject, folder / "in", folder / "out"
        self.out.mkdir()
        self.seeds = subject.seeds()
        self.went = Counter[str]()
        self.problems: dict[int, str] = {}
        self.watch = Watch(str(folder))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        signal.signal(signal.SIGPROF, _stop)
        for number in range(-5, 0):  # so that nothing is imported later
            self._tried(number)
        self.went.clear()
        self.problems.clear()

    def run(self, numbers: range) -> None:
        """Examine the files of these numbers."""
        for first in range(0, len(numbers), _TOGETHER):
            batch = numbers[first : first + _TOGETHER]
            largest = self._measured(batch)
            if largest > MEGABYTES:
                for number in batch:
                    self._alone(number)

    def _alone(self, number: int) -> None:
        grown = self._measured([number])
        size = sum(map(len, self.files(number).values()))
        if grown > MEGABYTES + TIMES * size / 1e6:
            self.problems[number] = f"{grown:.0f} MB of memory for {size} bytes"

    def _measured(self, numbers: Any) -> float:
        """Examine files; megabytes by which memory grew at most."""
        before = _peak(reset=True)
        for number in numbers:
            self._tried(number)
        return (_peak() - before) / 1024

    def files(self, number: int) -> Files:
        """The files of a number; the same number gives the same."""
        return self.subject.case(random.Random(number), self.seeds)

    def _tried(self, number: int, attempts: int = _ATTEMPTS) -> None:
        try:
            self.went[self.examine(number)] += 1
        except (Exception, TooLongError) as error:
            if isinstance(error, TooLongError) and attempts > 1:
                self._tried(number, attempts - 1)
                return
            text = " ".join(str(error).split())[:300]
            self.problems[number] = f"{type(error).__name__}: {text}{_where(error)}"

    def examine(self, number: int) -> str:
        """What became of the files of a number. Raises what is a problem."""
        files = self.files(number)
        write(files, self.folder)
        _empty(self.out)
        self.watch.seen.clear()
        size = sum(map(len, files.values()))
        signal.setitimer(signal.ITIMER_PROF, SECONDS + size / 1e6)
        try:
            went = self.subject.attempt(self.folder, self.out)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if self.watch.seen:
            raise ProblemError(str(self.watch.seen[:5]))
        return went


def examined(subject: Subject, numbers: range, *, loud: bool = False) -> Runner:
    """A runner that has examined these; loud: prints what it finds, as it goes."""
    with tempfile.TemporaryDirectory(dir=_in_memory()) as name:
        runner = Runner(subject, Path(name))
        start, reported = time.monotonic(), set[int]()
        for first in range(0, len(numbers), 500):
            runner.run(numbers[first : first + 500])
            if not loud:
                continue
            for number, text in runner.problems.items():
                if number not in reported:
                    print(f"file {number}: {text}", flush=True)
            reported |= runner.problems.keys()
            done = min(first + 500, len(numbers))
            rate = done / (time.monotonic() - start)
            print(f"{done} files, {rate:.0f} a second: {dict(runner.went)}", flush=True)
        return runner


def repeated(subject: Subject, number: int) -> str:
    """What becomes of the files of one number; raises what is a problem."""
    with tempfile.TemporaryDirectory(dir=_in_memory()) as name:
        return Runner(subject, Path(name)).examine(number)


def _in_memory() -> str | None:
    """A folder where fsync costs nothing, if there is one."""
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) else None


def write(files: Files, folder: Path) -> None:
    """Put files into a folder that holds no others."""
    folder.mkdir(exist_ok=True)
    _empty(folder)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            _empty(path)
            path.rmdir()
        else:
            path.unlink()


def _stop(*_: object) -> None:
    raise TooLongError("more than its time")


def _peak(*, reset: bool = False) -> int:
    """Kilobytes of resident memory at most, since it was last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _where(error: BaseException) -> str:
    """The last lines that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(f.filename).name}:{f.lineno}" for f in frames]
    return f" at {' '.join(lines[-6:])}"
