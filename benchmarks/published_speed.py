"""Published model files, compiled, beside onnxruntime.

    python benchmarks/published_speed.py [NAME ...] [--files FOLDER] [--threads 1]
        [--batch 1] [--rounds 5] [--own-time] [--patience 2] [--json FILE]

Takes the files that `published.py` lists, as `sweep.py` does, or every ONNX file under
FOLDER; NAME: those whose path contains it. Open dimensions that count a batch have the
size of `--batch`, the others the first of `burnish verify`'s with which onnxruntime
runs. Both contenders have a process of their own and are asked in turn. What is
printed: milliseconds (the processor's own with --own-time, for one thread),
onnxruntime's divided by ours, how far the results are apart, of their scale, and what
runs eagerly; at the end the geometric mean.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from compiled import generated, onnx_run
from race import Run, means, race
from sweep import chosen

KINDS = ["compiled", "onnxruntime"]


def made(kind: str, name: str, setting: dict[str, Any]) -> tuple[Run, Any]:
    """What a contender runs, its results, and what of it runs eagerly."""
    file, threads = Path(name), setting["threads"]
    feed = dict(np.load(setting["feed"]))
    if kind == "onnxruntime":
        run = onnx_run(file, feed, threads)
        return run, (arrays_of(run()), [])
    import burnish
    from burnish import Tensor

    warnings.simplefilter("ignore")
    given = [Tensor(array) for array in feed.values()]
    burnish.set_num_threads(threads)
    fast = burnish.compile(generated(file))
    results = arrays_of(fast(*given))
    lines = fast.explain().splitlines()
    return lambda: fast(*given), (results, [x.strip() for x in lines if x[:1] == " "])


def arrays_of(results: Any) -> list[np.ndarray]:
    """All arrays of what a call gives, also of sequences and mappings."""
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, list | tuple):
        return [array for each in results for array in arrays_of(each)]
    return [np.asarray(getattr(results, "data", results))]


def apart(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference of numbers, of their scale."""
    far = 0.0
    for one, other in zip(ours, theirs, strict=True):
        if one.shape != other.shape:
            return float("inf")
        if one.size and other.dtype.kind in "fiub":
            numbers = other.astype(np.float64)
            distance = np.nanmax(abs(one.astype(np.float64) - numbers))
            far = max(far, distance / max(1e-6, np.nanmax(abs(numbers))))
    return far


def feed_of(file: Path, batch: int) -> dict[str, np.ndarray]:
    """The first inputs of `burnish verify` that onnxruntime takes."""
    from burnish.codegen import feeds
    from burnish.codegen.readers import read

    model = read(file).model
    counted = {n: batch for n, counts in feeds.dimensions(model).items() if counts}
    why = "no inputs"
    for dims in (counted, {}):
        for feed in feeds.tries(model, given={}, dims=dims, seed=0):
            try:
                onnx_run(file, feed, 1)()
            except Exception as error:
                why = f"{type(error).__name__}: {str(error)[:200]}"
            else:
                return feed
    raise ValueError(why)


def measured(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table; "failed" says why there are no numbers."""
    row = {"name": f"{file.parent.name}/{file.stem}", "threads": options.threads}
    setting = {name: getattr(options, name) for name in ("threads", "rounds")}
    setting |= {"chunks": 4, "patience": options.patience, "own_time": options.own_time}
    with tempfile.TemporaryDirectory() as folder:
        setting["feed"] = str(Path(folder, "feed.npz"))
        try:
            feed = feed_of(file, options.batch)
        except Exception as error:
            return row | {"failed": str(error)}
        np.savez(setting["feed"], **feed)
        took, firsts, failed = race(made, str(file), KINDS, setting)
    row["inputs"] = [[str(a.dtype), *a.shape] for a in feed.values()]
    if failed:
        return row | {"failed": "; ".join(failed.values())}
    ours, eagerly = firsts["compiled"]
    return (
        row
        | took
        | {"apart": apart(ours, firsts["onnxruntime"][0])}
        | {"eagerly": eagerly}
    )


def shown(row: dict[str, Any]) -> str:
    """A line of the table."""
    if "failed" in row:
        return f"| {row['name']} | {row['failed']} | | | | |"
    ours, theirs = (row[kind] * 1e3 for kind in KINDS)
    eagerly = "; ".join(row["eagerly"]).replace("|", "/")[:200]
    head = f"| {row['name']} | {theirs:.3f} | {ours:.3f} | {theirs / ours:.2f}"
    return f"{head} | {row['apart']:.0e} | {eagerly} |"


def files_of(options: argparse.Namespace) -> Iterator[Path]:
    if options.files is None:
        yield from chosen(options.names)
        return
    for file in sorted(options.files.rglob("*.onnx")):
        if not options.names or any(name in str(file) for name in options.names):
            yield file


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--files", type=Path, metavar="FOLDER")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--own-time", action="store_true")
    parser.add_argument("--patience", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| file | onnxruntime | compiled | ratio | apart | eagerly |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    rows = []
    for file in files_of(options):
        rows.append(measured(file, options))
        print(shown(rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(means(rows, "compiled", KINDS))


if __name__ == "__main__":
    sys.exit(main())
