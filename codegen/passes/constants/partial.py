"""Evaluate part of a graph with ONNX's reference implementation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.evaluate import evaluate
from burnish.codegen.program import demand_order


class Unknown(Exception):
    """A value depends on an unknown one."""


class Evaluator:
    """Evaluates values with ONNX's reference from known values and constants."""

    def __init__(self, version: int):
        self.version = version

    def __call__(
        self,
        value: ir.Value,
        known: Mapping[ir.Value, np.ndarray],
        among: Set[str] | None = None,
    ) -> np.ndarray:
        """The value; `among`: the operators that it may come from."""
        made = dict(known)
        for node in before(value, made):
            if node.domain or (among is not None and node.op_type not in among):
                raise Unknown
            arrays = [None if v is None else self._known(v, made) for v in node.inputs]
            version = node.version or self.version
            made.update(
                zip(node.outputs, evaluate(node, version, arrays), strict=False)
            )
        return self._known(value, made)

    def _known(
        self, value: ir.Value, made: Mapping[ir.Value, np.ndarray]
    ) -> np.ndarray:
        if value in made:
            return made[value]
        tensor = g.constant(value)
        if tensor is None:
            raise Unknown
        return tensor.numpy()


def before(value: ir.Value, known: Mapping[ir.Value, object]) -> Iterator[ir.Node]:
    """The nodes between the known values and a value, in topological order."""

    def makers(values: Iterable[ir.Value | None]) -> list[ir.Node]:
        found = (v.producer() for v in values if v is not None and v not in known)
        return [node for node in found if node is not None]

    return demand_order(makers([value]), lambda node: makers(node.inputs))
