"""The gallery's models beside onnxruntime running their originals: inference.

    python benchmarks/gallery.py [--threads 1] [--only TEXT] [--rounds 7]

Models whose original is not in the cache are left out. What is printed: milliseconds of
each, and onnxruntime's time divided by Burnish's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from beside import Timing, limit_threads, measure, report

TOLERANCE = 1e-3


def timings(only: str, rounds: int, threads: int) -> Iterator[Timing]:
    from burnish.models._gallery import ENTRIES
    from burnish.models._numbers import feeds

    for entry in ENTRIES:
        if only.lower() not in entry.module.lower():
            continue
        if not entry.file.is_file():
            print(f"{entry.module}: no original; run: {entry.command}", file=sys.stderr)
            continue
        feed = feeds(entry.folder)[0]
        ours = _our_run(entry, list(feed.values()))
        theirs = _their_run(entry, feed, threads)
        _same(ours(), theirs())
        sizes = ", ".join("x".join(map(str, a.shape)) or "1" for a in feed.values())
        yield measure(f"{entry.module} {sizes}", ours, theirs, rounds)


def _our_run(entry: Any, inputs: list[Any], wrap: Any = None) -> Callable[[], Any]:
    from burnish import Tensor
    from burnish.codegen.pipeline import write
    from burnish.models._gallery import generated

    with tempfile.TemporaryDirectory() as folder:
        write(generated(entry), Path(folder))
        model = entry.model().from_file(Path(folder, f"{entry.module}.safetensors"))
    given = [Tensor(a) for a in inputs]
    run = model if wrap is None else wrap(model)
    return lambda: run(*given)


def _their_run(entry: Any, feed: dict[str, Any], threads: int) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(entry.file, options, providers=providers)
    return lambda: session.run(None, feed)


def _same(ours: Any, theirs: Any) -> None:
    import numpy as np

    first = ours[0] if isinstance(ours, tuple) else ours
    scale = max(1.0, float(abs(theirs[0]).max()))
    difference = float(abs(np.asarray(first.data) - theirs[0]).max())
    assert difference < TOLERANCE * scale, f"they differ by {difference}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    limit_threads(options.threads)
    found = timings(options.only, options.rounds, options.threads)
    report(found, peer="onnxruntime")


if __name__ == "__main__":
    main()
