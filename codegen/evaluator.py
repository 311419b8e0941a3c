"""ONNX's reference evaluator, where the installed one is right, in float64 too.

It raises EvaluatorError about what the installed version has wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from burnish.codegen.terminal import shown


class EvaluatorError(Exception):
    """The installed evaluator gives other numbers than the specification."""


class GatherElements(OpRun):
    """onnx's own takes no more than 64 rows."""

    op_domain = ""

    def _run(self, data: Any, indices: Any, axis: int | None = None) -> tuple[Any]:
        axis = (axis or 0) % data.ndim
        near = [slice(n) for n in indices.shape]  # places that have no index are left
        near[axis] = slice(None)
        return (np.take_along_axis(data[tuple(near)], indices, axis),)


@dataclass(frozen=True)
class _Mended:
    """A bug of onnx's evaluators before the version `since`; None: of all."""

    operators: frozenset[str]
    since: tuple[int, int] | None
    what: str
    concerns: Callable[[onnx.NodeProto, set[str]], bool]


def _is_reversed(node: onnx.NodeProto, _empty: set[str]) -> bool:
    return any(a.name == "direction" and a.s != b"forward" for a in node.attribute)


def _returns_its_cell(node: onnx.NodeProto, _empty: set[str]) -> bool:
    return len(node.output) > 2 and bool(node.output[2])


def _empty_region(node: onnx.NodeProto, empty: set[str]) -> bool:
    return len(node.input) > 1 and node.input[1] in empty


def _grouped(node: onnx.NodeProto, _empty: set[str]) -> bool:
    heads = {a.name: a.i for a in node.attribute if a.name.endswith("_num_heads")}
    return len(set(heads.values())) > 1


def _without_condition(node: onnx.NodeProto, _empty: set[str]) -> bool:
    return len(node.input) < 2 or not node.input[1]


_MENDED = (
    _Mended(frozenset(("Attention",)), (1, 20), "grouped heads", _grouped),
    _Mended(frozenset(("GRU", "LSTM", "RNN")), (1, 23), "direction", _is_reversed),
    _Mended(frozenset(("LSTM",)), (1, 23), "a cell state", _returns_its_cell),
    _Mended(frozenset(("Loop",)), None, "no condition", _without_condition),
    _Mended(frozenset(("Resize",)), (1, 22), "an empty roi", _empty_region),
)


def evaluated(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """All outputs of the model for these inputs."""
    installed = tuple(map(int, onnx.__version__.split(".")[:2]))
    later = [each for each in _MENDED if not each.since or installed < each.since]
    if later:
        empty = {t.name for t in model.graph.initializer if 0 in t.dims}
        blocks = [model.graph.node, *(f.node for f in model.functions)]
        for node in (node for block in blocks for node in _nodes(block)):
            _refuse(node, later, empty)
    evaluator = ReferenceEvaluator(model, new_ops=[GatherElements])
    outputs: Any = evaluator.run(None, dict(feeds))
    return outputs


def _refuse(node: onnx.NodeProto, later: list[_Mended], empty: set[str]) -> None:
    for each in later:
        if node.op_type in each.operators and each.concerns(node, empty):
            needed = (
                f"onnx>={'.'.join(map(str, each.since))}, or " if each.since else ""
            )
            raise EvaluatorError(
                f"{shown(node.op_type)}: {each.what} is computed wrongly by onnx "
                f"{onnx.__version__}; install {needed}onnxruntime"
            )


def _nodes(block: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes of a block, and those inside them."""
    for node in block:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner.node)


# --- in float64 ---

_NARROW, _WIDE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


def widen(model: onnx.ModelProto) -> None:
    """Let a model compute in float64 what it does in float32.

    Whole numbers, half precision and what a file keeps in other formats stay.
    """
    for tensor in model.graph.initializer:
        _widen_tensor(tensor)
    for block in (model.graph.node, *(f.node for f in model.functions)):
        for node in block:
            _widen_node(node)


def _widen_node(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            _widen_tensor(attribute.t)
        if attribute.name in ("to", "dtype") and attribute.i == _NARROW:
            attribute.i = _WIDE
        for graph in _graphs(attribute):
            for tensor in graph.initializer:
                _widen_tensor(tensor)
            for inner in graph.node:
                _widen_node(inner)


def _graphs(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    if attribute.type == onnx.AttributeProto.GRAPH:
        yield attribute.g
    yield from attribute.graphs


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == _NARROW:
        array = wide_array(numpy_helper.to_array(tensor))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def wide_array(array: np.ndarray) -> np.ndarray:
    """A float32 array in float64; others as they are."""
    return array.astype(np.float64) if array.dtype == np.float32 else array
