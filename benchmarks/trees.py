"""Ensembles of trees beside onnxruntime: reading the file, one row, 1,000 rows.

    python benchmarks/trees.py [--large]

Complete trees with random features and thresholds, as TreeEnsembleRegressor and, with
three classes, as TreeEnsembleClassifier. Both run on a thread, in turn. `--large` adds
ensembles of 250 trees and 4.1 million nodes, and prints the seconds and the memory that
generating their source takes.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from beside import Timing, limit_threads, measure, report
from onnx import helper

ML = "ai.onnx.ml"
FEATURES = 32
SIZES = {"small": (100, 5), "middle": (500, 10)}
LARGE = {"large": (250, 13)}
ROWS = (1, 10, 1000)
BATCHES = 64


def ensemble(trees: int, depth: int, classes: int = 0) -> onnx.ModelProto:
    """Complete trees of `depth` comparisons; classes: 0 for a regressor."""
    random = np.random.default_rng(0)
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    here = np.tile(np.arange(nodes), trees)
    tree = np.repeat(np.arange(trees), nodes)
    inside = here < inner
    leaf = ~inside
    kinds = np.where(inside, "BRANCH_LEQ", "LEAF")
    votes, name = max(classes, 1), "class" if classes else "target"
    shared: dict[str, Any] = {
        "nodes_treeids": tree,
        "nodes_nodeids": here,
        "nodes_featureids": random.integers(FEATURES, size=len(here)) * inside,
        "nodes_values": random.normal(size=len(here)).astype(np.float32),
        "nodes_hitrates": np.ones(len(here), np.float32),
        "nodes_modes": kinds,
        "nodes_truenodeids": (2 * here + 1) * inside,
        "nodes_falsenodeids": (2 * here + 2) * inside,
        "nodes_missing_value_tracks_true": np.zeros(len(here), np.int64),
        "post_transform": "NONE",
        f"{name}_treeids": np.repeat(tree[leaf], votes),
        f"{name}_nodeids": np.repeat(here[leaf], votes),
        f"{name}_ids": np.tile(np.arange(votes), int(leaf.sum())),
        f"{name}_weights": random.random(leaf.sum() * votes).astype(np.float32),
    }
    if classes:
        kind, results = "TreeEnsembleClassifier", ["label", "scores"]
        shared["classlabels_int64s"] = list(range(classes))
    else:
        kind, results = "TreeEnsembleRegressor", ["scores"]
        shared["n_targets"] = 1
    given = {k: getattr(v, "tolist", lambda v=v: v)() for k, v in shared.items()}
    node = helper.make_node(kind, ["x"], results, domain=ML, **given)
    types = {"label": onnx.TensorProto.INT64, "scores": onnx.TensorProto.FLOAT}
    shapes = {"label": ["N"], "scores": ["N", votes]}
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info(n, types[n], shapes[n]) for n in results],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def timings(folder: Path, sizes: dict[str, tuple[int, int]]) -> Iterator[Timing]:
    for name, (trees, depth) in sizes.items():
        for classes in (0, 3):
            path = folder / f"{name}{classes}.onnx"
            onnx.save(ensemble(trees, depth, classes), path)
            if name in LARGE:
                print(f"{path.name}: {path.stat().st_size >> 20} MiB", generated(path))
            kind = "classifier" if classes else "regressor"
            theirs = _session(path)
            for form, ours in _models(path, folder):
                for rows in ROWS:
                    random = np.random.default_rng(1)
                    x = random.normal(size=(BATCHES, rows, FEATURES))
                    given = list(x.astype(np.float32))
                    _agree(ours(given[0]), theirs(given[0]))
                    turns = (_in_turn(run, given) for run in (ours, theirs))
                    yield measure(f"{name} {kind}, {form}, {rows} rows", *turns)


def _in_turn(run: Callable[[Any], Any], batches: list[Any]) -> Callable[[], Any]:
    """Runs with one batch after the other: processors learn the ways of one."""
    several = itertools.cycle(batches)
    return lambda: run(next(several))


def _agree(ours: Any, theirs: list[Any]) -> None:
    ours = ours if isinstance(ours, tuple) else (ours,)
    for y, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-4, atol=1e-4)


def _session(path: Path) -> Callable[[Any], list[Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    return lambda x: session.run(None, {"x": x})


def _models(path: Path, folder: Path) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """The generated module: its kernels, NumPy alone, and as a plan."""
    import burnish
    from burnish.codegen import ModelGen
    from burnish.kernels import direct

    if not (folder / f"{path.stem}.py").exists():
        ModelGen(folder).input(path).run()
    sys.path.insert(0, str(folder))
    model = __import__(path.stem).Model.from_file()
    found = direct.usable
    if found() is not None:
        yield "kernel", model
        compiled = burnish.compile(model)
        yield "plan", lambda x: compiled(burnish.Tensor(x))
    direct.usable = lambda: None
    yield "NumPy", model
    direct.usable = found


def generated(path: Path) -> str:
    """The seconds and the memory of `burnish generate`, in a process of its own."""
    before = time.perf_counter()
    command = [sys.executable, "-m", "burnish", "generate", path, "-o", path.parent]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    return f"generated in {time.perf_counter() - before:.1f} s, {peak} MiB"


if __name__ == "__main__":
    limit_threads(1)
    os.environ.setdefault("BURNISH_THREADS", "1")
    sizes = SIZES | LARGE if "--large" in sys.argv[1:] else SIZES
    with tempfile.TemporaryDirectory() as place:
        report(timings(Path(place), sizes), peer="onnxruntime")
