"""The gallery compiled, as it is, and in onnxruntime: inference.

    python benchmarks/compiled.py [--threads 1] [--only TEXT] [--rounds 7]

Each contender is a process of its own, asked in turn; before every sample both wait for
idle processors, two seconds at most. What is printed: the median of the lower third of
each one's samples, and onnxruntime's and the plain call's time divided by the compiled
one's. Models whose original is not in the cache are left out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from pathlib import Path
from typing import Any

from beside import TURN, limit_threads, seconds
from gallery import _our_run, _their_run

CONTENDERS = ("compiled", "plain", "onnxruntime")


def contender(kind: str, module: str, threads: int, pipe: Any) -> None:
    """A process: makes a run, then answers every question with its seconds."""
    import burnish
    from burnish.models._gallery import BY_MODULE
    from burnish.models._numbers import feeds

    entry = BY_MODULE[module]
    feed = feeds(entry.folder)[0]
    if kind == "onnxruntime":
        run = _their_run(entry, feed, threads)
    else:
        wrap = burnish.compile if kind == "compiled" else None
        run = _our_run(entry, list(feed.values()), wrap)
    run()
    times = max(1, round(TURN / seconds(run, 1)))
    pipe.send(None)
    while pipe.recv():
        pipe.send(min(seconds(run, times) for _ in range(4)))


def wait_for_idle(most: float = 2.0) -> None:
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


def race(module: str, threads: int, rounds: int) -> dict[str, float]:
    """The seconds of each contender."""
    context = multiprocessing.get_context("spawn")
    pipes, workers = {}, []
    for kind in CONTENDERS:
        pipes[kind], theirs = context.Pipe()
        worker = context.Process(target=contender, args=(kind, module, threads, theirs))
        worker.start()
        workers.append(worker)
        pipes[kind].recv()
    samples: dict[str, list[float]] = {kind: [] for kind in CONTENDERS}
    for _ in range(rounds):
        for kind, pipe in pipes.items():
            wait_for_idle()
            pipe.send(True)
            samples[kind].append(pipe.recv())
    for pipe, worker in zip(pipes.values(), workers, strict=True):
        pipe.send(False)
        worker.join()
    third = max(1, rounds // 3)
    return {k: statistics.median(sorted(v)[:third]) for k, v in samples.items()}


def main() -> None:
    from burnish.models._gallery import ENTRIES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    limit_threads(options.threads)
    print(f"{'':24}" + "".join(f"{kind:>14}" for kind in CONTENDERS) + "  ratios")
    for entry in ENTRIES:
        if options.only not in entry.module or not entry.file.is_file():
            continue
        took = race(entry.module, options.threads, options.rounds)
        cells = "".join(f"{took[kind] * 1e3:12.3f}ms" for kind in CONTENDERS)
        theirs, plain = (took[k] / took["compiled"] for k in ("onnxruntime", "plain"))
        print(f"{entry.module:24}{cells}  {theirs:5.2f} {plain:5.2f}", flush=True)


if __name__ == "__main__":
    main()
