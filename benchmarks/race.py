"""Contenders timed in turn, each in a process of its own: what benchmarks share."""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beside import TURN

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Run = Callable[[], Any]
Make = Callable[[str, str, dict[str, Any]], tuple[Run, Any]]
"""Of a contender, a row's name and the setting: what it runs, and its first result."""


def _contender(make: Make, kind: str, name: str, setting: Any, pipe: Any) -> None:
    """A process: makes a run, then answers every question with its seconds."""
    clock = time.process_time if setting.get("own_time") else time.perf_counter
    try:
        run, first = make(kind, name, setting)
        run()
        times = max(1, round(TURN / _seconds(run, 1, clock)))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {str(error)[:200]}")
        if os.environ.get("BENCHMARK_ERRORS"):
            traceback.print_exc()
        return
    pipe.send((first,))
    while pipe.recv():
        pipe.send(min(_seconds(run, times, clock) for _ in range(setting["chunks"])))


def _seconds(run: Run, times: int, clock: Callable[[], float]) -> float:
    """How long one of `times` runs takes."""
    start = clock()
    for _ in range(times):
        run()
    return (clock() - start) / times


def race(
    make: Make, name: str, kinds: list[str], setting: dict[str, Any]
) -> tuple[dict[str, float], dict[str, Any], dict[str, str]]:
    """Seconds and first results of each contender, and why others have none.

    setting: threads; rounds, of as many samples; chunks, the least of which is a
    sample; patience, how many seconds a sample waits for idle processors at most;
    own_time, whether a contender's own processor time counts and not the clock.
    """
    context = multiprocessing.get_context("spawn")
    os.environ.update(dict.fromkeys(LIMITS, str(setting["threads"])))
    pipes, workers = {}, []
    for kind in kinds:
        pipes[kind], theirs = context.Pipe()
        given = (make, kind, name, setting, theirs)
        worker = context.Process(target=_contender, args=given, daemon=True)
        worker.start()
        theirs.close()
        workers.append(worker)
    answers = {kind: _answer(pipe) for kind, pipe in pipes.items()}
    failed = {kind: made for kind, made in answers.items() if isinstance(made, str)}
    racing = {kind: pipe for kind, pipe in pipes.items() if kind not in failed}
    samples: dict[str, list[float]] = {kind: [] for kind in racing}
    for _ in range(setting["rounds"]):
        for kind, pipe in racing.items():
            wait_for_idle(setting["patience"])
            pipe.send(True)
            samples[kind].append(pipe.recv())
    for pipe in racing.values():
        pipe.send(False)
    for worker in workers:
        worker.join()
    third = max(1, setting["rounds"] // 3)
    took = {k: statistics.median(sorted(v)[:third]) for k, v in samples.items()}
    return took, {kind: answers[kind][0] for kind in racing}, failed


def _answer(pipe: Any) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return "its process ended"


def wait_for_idle(most: float) -> None:
    """Return once all processors have been idle for a moment, or after a while."""
    end = time.perf_counter() + most
    while time.perf_counter() < end:
        before = _idle()
        time.sleep(0.02)
        idle, whole = (b - a for a, b in zip(before, _idle(), strict=True))
        if idle >= 0.9 * whole:
            return


def _idle() -> tuple[int, int]:
    """Ticks that processors were idle, and all ticks."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return ticks[3], sum(ticks)


def means(rows: list[dict[str, Any]], ours: str, kinds: list[str]) -> str:
    """Geometric means of the others' seconds over ours, for each number of threads."""
    lines = []
    for threads in sorted({row["threads"] for row in rows}):
        for kind in kinds:
            logs = [
                math.log(row[kind] / row[ours])
                for row in rows
                if row["threads"] == threads
                and isinstance(row.get(kind), float)
                and isinstance(row.get(ours), float)
            ]
            if logs and kind != ours:
                mean = math.exp(sum(logs) / len(logs))
                text = f"{kind} / {ours}, geometric mean of {len(logs)}: {mean:.2f}"
                lines.append(f"{threads} threads: {text}")
    return "\n".join(lines)
