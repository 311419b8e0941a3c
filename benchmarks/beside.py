"""Two implementations timed in turn, in one process: what the benchmarks share.

A ratio is the peer's time divided by Burnish's: 1 is equal, 2 is twice as fast, 0.5
takes twice as long. Both run in short turns, one after the other, and the least time of
each counts: what else runs on the machine only ever adds to it. On a busy machine, and
with one thread, the process's own time is nearer to the truth.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

TURN = 0.01  # seconds a turn takes at least


class Timing(NamedTuple):
    """The least seconds of one run of each."""

    name: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def limit_threads(count: int) -> None:
    """Start this program again with so many threads, unless it has been."""
    wanted = {
        name: str(count)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])


def measure(
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    rounds: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Both run in turn, `rounds` times; the first runs are not counted."""
    gc.collect()
    gc.disable()
    runs = []
    for run in (ours, theirs):
        run()
        once = seconds(run, 1, clock)
        runs.append((run, max(1, round(TURN / once))))
    best = [float("inf")] * 2
    for _ in range(rounds):
        for place, (run, times) in enumerate(runs):
            best[place] = min(best[place], seconds(run, times, clock))
    gc.enable()
    return Timing(name, *best)


def seconds(
    run: Callable[[], Any], times: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """How long one of `times` runs takes."""
    start = clock()
    for _ in range(times):
        run()
    return (clock() - start) / times


def report(timings: Iterable[Timing], worst: int = 10, peer: str = "torch") -> None:
    """A line for each, as they come, and the slowest against the peer at the end."""
    print(f"{'':44} {'burnish':>10} {peer:>10}  ratio")
    seen = []
    for timing in timings:
        print(_line(timing), flush=True)
        seen.append(timing)
    print(f"\nthe lowest of {len(seen)}:")
    for timing in sorted(seen, key=lambda t: t.ratio)[:worst]:
        print(_line(timing))


def _line(t: Timing) -> str:
    return f"{t.name:44} {t.ours * 1e3:8.3f}ms {t.theirs * 1e3:8.3f}ms  {t.ratio:5.2f}"
