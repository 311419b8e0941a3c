"""ONNX's reference evaluator, where the installed one is right.

It raises EvaluatorError about what the installed version has wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from burnish.codegen.terminal import shown


class EvaluatorError(Exception):
    """The installed evaluator gives other numbers than the specification."""


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
    outputs: Any = ReferenceEvaluator(model).run(None, dict(feeds))
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
