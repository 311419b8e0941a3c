"""Results of a step of one token in half precision, where only products read them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend.cuda.decoding import few_rows
from burnish.backend.cuda.decoding.few_rows import Norm
from burnish.backend.cuda.norms import residual
from burnish.capture import CaptureError
from burnish.plan.cuda.tokens.nodes import Nodes
from burnish.plan.graph import Constant, Node, Value

NORMS = {"layer_norm_from": "layer", "rms_norm_from": "rms"}
_VIEWS = ("reshape", "transpose", "getitem")


class Narrow:
    """The dtype of results, for products in a half precision ("" for none).

    multiplied: the `id`s of products with launches, which round rows to it in any case:
    numbers are the same as if they did so later.
    """

    def __init__(self, nodes: Nodes, half: str):
        self._nodes, self._half = nodes, half
        self.multiplied: set[int] = set()

    def dtype(self, value: Value, rows: int) -> Any:
        """What a result of so many rows is stored as."""
        rounds = self._half == "float16" and rows > few_rows.MATRIX
        return np.float16 if rounds and self._feeds_products(value) else np.float32

    def _feeds_products(self, value: Value) -> bool:
        """Whether only products that have launches read a value, or views of it."""
        readers = self._nodes.readers.get(value.place, ())
        if not readers or value.place in self._nodes.graph.results:
            return False
        for node in readers:
            if node.name == "linear":
                if node.args[0] is not value or id(node) not in self.multiplied:
                    return False
            elif node.name not in _VIEWS or not self._feeds_products(node.result):
                return False
        return True


def is_by_row(node: Node) -> bool:
    """Whether a norm is of whole rows, by constants for each of their elements."""
    given = node.args[0]
    own = [part for part in node.args[1:] if part is not None]
    ins = given.shape[-1]
    if not all(isinstance(p, Constant) and math.prod(p.shape) == ins for p in own):
        return False
    return node.options["axis"] in (-1, len(given.shape) - 1)


def normed(x: Any, norm: Norm) -> Any:
    """The rows of x (rows, ins), standardized in single precision, in float16."""
    found = residual.add_norm(
        x,
        None,
        norm.gain,
        norm.shift,
        norm.eps,
        center=norm.kind == "layer",
        dtype=np.dtype(np.float16),
        kept=None,
    )
    if found is None:
        raise CaptureError("a norm of longer rows than kernels have")
    return found[1]
