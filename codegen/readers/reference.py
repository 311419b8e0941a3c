"""Reference outputs of a model file, by onnxruntime or ONNX's reference evaluator."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from burnish._files.budget import Budget
from burnish.codegen.errors import VerifyError, silent
from burnish.codegen.evaluator import evaluated, wide_array, widen
from burnish.codegen.ops import Trait, having
from burnish.codegen.readers.proto import clean

Feeds = Mapping[str, np.ndarray]
#: Seconds after which a reference is given no further inputs.
_PATIENCE = 60.0

#: Exact sums and fused nodes, as onnxruntime is asked for them in turn: with exact
#: sums it fails for some files, and some that it wrote it optimizes no second time.
_SESSIONS = (("1", True), ("0", True), ("0", False))

#: How far, relative to a value, the order of float32 sums may leave it.
_NOISE = 2.0**-19
_QUANTIZERS = frozenset(("DynamicQuantizeLinear", "QuantizeLinear"))
#: Operators that quantize what they compute, step by step.
_QUANTIZED_LOOPS = frozenset(("DynamicQuantizeLSTM",))
#: Operators that give codes or whole numbers.
_FIXED_SOURCES = _QUANTIZERS | {
    *("Constant", "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"),
}
#: Operators on floats that round once, or move values.
_FIXED = having(Trait.VIEW | Trait.SELECTION) | {
    *("Add", "Cast", "Clip", "Concat", "DequantizeLinear", "Div", "Max", "MaxPool"),
    *("Min", "Mul", "Relu", "Sub"),
}

Compute = Callable[[dict[str, np.ndarray]], list[Any]]


def run(
    path: Path, tries: Callable[[], Iterable[Feeds]]
) -> tuple[Feeds, list[Any], str]:
    """The first inputs that a reference takes, all its outputs, and who computed them.

    onnxruntime is asked first, with all of them: it is fast, and independent of both
    sides. Raises VerifyError where none takes any, with the first reason of each.
    """
    problems = []
    for name, start in (("onnxruntime", _runtime), ("onnx", _reference)):
        reasons = []
        try:
            compute, version = start(path)
        except ModuleNotFoundError:
            problems.append(f"{name}: not installed (pip install {name})")
            continue
        except Exception as error:  # both raise many kinds
            problems.append(f"{name}: {_short(error)}")
            continue
        end = monotonic() + _PATIENCE
        for feeds in tries():
            if monotonic() > end:
                break
            try:
                return feeds, compute(dict(feeds)), f"{name} {version}"
            except Exception as error:
                reasons.append(f"{name}: {_short(error)}")
        problems += reasons[:1]
    raise VerifyError(
        f"{path}: expected the reference to run on these inputs, got "
        + "; ".join(problems)
    )


def by_definition(path: Path, feeds: Feeds) -> list[Any] | None:
    """What onnxruntime computes node by node, fusing none; None where it cannot."""
    return next(_node_by_node(path, feeds), None)


def with_noise(path: Path, feeds: Feeds) -> Iterator[list[Any]]:
    """The same, with the last bits of what is quantized drawn anew for each result.

    Random are those that the specification leaves open. The draws are always the same.
    """
    yield from _node_by_node(path, feeds, change=_add_noise)


def _node_by_node(
    path: Path,
    feeds: Feeds,
    change: Callable[[onnx.ModelProto], None] | None = None,
) -> Iterator[list[Any]]:
    """onnxruntime's results for the file, after a change; none where it cannot."""
    try:
        runtime = importlib.import_module("onnxruntime")
        file = None if change is None else _changed(path, change)
        session = _session(runtime, path, exact="1", fused=False, file=file)
        while True:
            yield session.run(None, dict(feeds))
    except Exception:  # missing, or no kernel for an operator as it is in the file
        return


def _changed(path: Path, change: Callable[[onnx.ModelProto], None]) -> bytes:
    model = onnx.load(str(path))
    change(model)
    return model.SerializeToString()


def _add_noise(model: onnx.ModelProto) -> None:
    """Change the inputs of quantizers by up to _NOISE of themselves.

    Those of quantized loops stand for the last bits of the states.
    """
    made_by = {name: node for node in model.graph.node for name in node.output if name}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        is_open = node.op_type in _QUANTIZED_LOOPS or (
            node.op_type in _QUANTIZERS and _is_open(node.input[0], made_by)
        )
        if is_open:
            x, q = node.input[0], next(filter(None, node.output))
            factor, moved = f"{q}:factor", f"{q}:moved"
            like = onnx.helper.make_node(
                "RandomUniformLike",
                [x],
                [factor],
                low=1 - _NOISE,
                high=1 + _NOISE,
                seed=float(len(nodes)),
            )
            nodes += [like, onnx.helper.make_node("Mul", [x, factor], [moved])]
            node.input[0] = moved
        nodes.append(node)
    copied = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copied)


def _is_open(name: str, made_by: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether the specification leaves the last bits of a value open.

    It does not where each operator since the inputs, or since the codes of the last
    quantizers, rounds once or never.
    """
    pending = [name]
    seen: set[int] = set()
    while pending:
        node = made_by.get(pending.pop())
        if node is None or id(node) in seen or node.op_type in _FIXED_SOURCES:
            continue
        if node.op_type not in _FIXED:
            return True
        seen.add(id(node))
        pending.extend(node.input)
    return False


def in_float64(path: Path, feeds: Feeds) -> list[Any] | None:
    """What ONNX's evaluator computes in float64; None where it cannot."""
    wide = {name: wide_array(array) for name, array in feeds.items()}
    try:
        outputs = _evaluator(path, change=widen)(wide)
    except Exception:  # it lacks operators, and raises many kinds
        return None
    parts = (p for each in outputs for p in (each if type(each) is list else [each]))
    is_narrow = any(getattr(part, "dtype", None) == np.float32 for part in parts)
    return None if is_narrow else outputs


def _runtime(path: Path) -> tuple[Compute, str]:
    runtime = importlib.import_module("onnxruntime")
    for exact, fused in _SESSIONS:
        try:
            session = _session(runtime, path, exact, fused=fused)
            return partial(session.run, None), runtime.__version__
        except Exception as error:  # of many kinds
            failed = error
    raise failed


def _session(
    runtime: Any,
    path: Path,
    exact: str,
    *,
    fused: bool = True,
    file: bytes | None = None,
) -> Any:
    """exact: sums of 8 bits never saturate, also on processors where they would.

    file: what to run in place of the file at `path`.
    """
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    if not fused:
        level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    options.intra_op_num_threads = 1 if _shares_ranges(path) else 2
    options.add_session_config_entry("session.x64quantprecision", exact)
    # blocks of few bits are multiplied as floats: by default it rounds activations
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return runtime.InferenceSession(
        str(path) if file is None else file, options, providers=["CPUExecutionProvider"]
    )


def _shares_ranges(path: Path) -> bool:
    """Whether the file has LSTMs whose rows are quantized by one range.

    onnxruntime's threads share the rows, and each part would have a range of its own.
    """
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return data.find(b"DynamicQuantizeLSTM") >= 0


def _reference(path: Path) -> tuple[Compute, str]:
    return _evaluator(path), onnx.__version__


def _evaluator(
    path: Path, change: Callable[[onnx.ModelProto], None] | None = None
) -> Compute:
    """What ONNX's evaluator computes for the file, after a change of the model."""
    model = onnx.load(str(path))
    # ONNX's evaluator knows one spelling of its own domain
    clean(model, silent, Budget(path.stat().st_size, str(path)))
    if not _is_sorted(model.graph):
        loose = ir.from_proto(model)
        loose.graph.sort()
        model = ir.to_proto(loose)
    if change is not None:
        change(model)

    def compute(feeds: dict[str, np.ndarray]) -> list[Any]:
        with np.errstate(all="ignore"):
            return evaluated(model, feeds)

    return compute


def _is_sorted(graph: onnx.GraphProto) -> bool:
    """Whether the nodes of the main graph are in topological order."""
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if later.intersection(node.input):
            return False
        later.difference_update(node.output)
    return True


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
