"""Estimators of scikit-learn, LightGBM and XGBoost, compiled, beside onnxruntime.

    python benchmarks/estimators.py [--only TEXT] [--rounds 7] [--own-time] [--explain]

The estimators of docs/estimators.md, one thread, 1 and 1,000 rows. What is printed:
milliseconds of each (the processor's own with --own-time) and onnxruntime's time
divided by Burnish's; geometric means at the end. --explain: what runs eagerly, too.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from beside import Timing, limit_threads, measure, report

ROWS = (1, 1000)


def timings(options: argparse.Namespace) -> Iterator[Timing]:
    import burnish
    from burnish.codegen.backend import imported
    from tests.estimators import ESTIMATORS, converted

    clock = time.process_time if options.own_time else time.perf_counter
    for name in ESTIMATORS:
        if options.only not in name:
            continue
        made = converted(name)
        theirs = _session(made.model.SerializeToString())
        for rows in ROWS:
            x = np.resize(made.rows, (rows, *made.rows.shape[1:]))
            model = burnish.compile(imported(made.model))
            held = burnish.Tensor(x) if x.dtype.kind in "fiub" else x
            yield measure(
                f"{name.rpartition('.')[2]}, {rows} rows",
                partial(model, held),
                partial(theirs, x),
                options.rounds,
                clock,
            )
            if options.explain:
                print(model.explain())


def _session(model: bytes) -> Callable[[Any], Any]:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, settings)
    given = session.get_inputs()[0].name
    return lambda x: session.run(None, {given: x})


def means(seen: list[Timing]) -> None:
    """Print the geometric mean of the ratios by the number of rows."""
    by_rows = defaultdict(list)
    for timing in seen:
        by_rows[timing.name.rpartition(", ")[2]].append(math.log(timing.ratio))
    for rows, logs in by_rows.items():
        print(f"{rows}: geometric mean {math.exp(sum(logs) / len(logs)):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--own-time", action="store_true")
    parser.add_argument("--explain", action="store_true")
    limit_threads(1)
    os.environ.setdefault("BURNISH_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parents[1]))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")  # branches that Where takes nothing of
    taken: list[Timing] = []
    every = timings(parser.parse_args())
    report((taken.append(each) or each for each in every), 30, peer="onnxruntime")
    means(taken)
