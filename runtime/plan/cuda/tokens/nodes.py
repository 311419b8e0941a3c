"""Queries on the nodes of a one-token step: producers of values, and their operands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.capture import Program
from burnish.ops.sequences.attention import scaled_dot_product_attention
from burnish.plan.graph import Constant, Graph, Node, Value
from burnish.plan.rewrites.fuse import fuse

QUERIES = 1
"""The place of the argument that says where the new position is."""


class Nodes:
    """The fused nodes of a program, who makes values and who reads them."""

    def __init__(self, program: Program):
        self.graph = Graph(program)
        fuse(self.graph)
        self._makers = self.graph.makers()
        self.readers = self.graph.readers()

    def maker(self, value: Any, *names: str) -> Node | None:
        node = self._makers.get(value.place) if isinstance(value, Value) else None
        return node if node is not None and (not names or node.name in names) else None

    def alone(self, value: Value) -> bool:
        """Whether one node reads it, and it is no result."""
        once = len(self.readers.get(value.place, ())) == 1
        return once and value.place not in self.graph.results

    def viewed(self, value: Any) -> tuple[Any, list[Node]]:
        """The value it is a view of, and the call that makes the view."""
        through: list[Node] = []
        while (node := self.maker(value, "getitem", "reshape")) is not None:
            given = node.args[0]
            if not isinstance(given, Value) or given.size != value.size:
                break
            if node.name == "getitem" and not _keeps_order(node.options["index"]):
                break
            through.append(node)
            value = given
        return value, through

    def turned(self, value: Value) -> tuple[Any, Any]:
        """(x, (cosines, sines, nodes)) where a value is x with pairs of it rotated."""
        node = self.maker(value, "concat_of")
        if node is None or len(node.args) != 2 or not self.alone(value):
            return value, None
        if node.options.get("axis") not in (-1, len(value.shape) - 1):
            return value, None
        halves = [self.maker(part, "program") for part in node.args]
        if any(each is None or not self.alone(each.result) for each in halves):
            return value, None
        low, high = (_terms(each) for each in halves if each is not None)
        if low is None or high is None or (low[0], high[0]) != ("sub", "add"):
            return value, None
        # low = a * cos - b * sin, high = b * cos + a * sin
        (a, cosines), (b, sines) = low[1]
        if {pair(high[1][0]), pair(high[1][1])} != {_key(b, cosines), _key(a, sines)}:
            return value, None
        parts = self.maker(a, "split")
        if parts is None or [r.place for r in parts.results] != [a.place, b.place]:
            return value, None
        if a.shape != b.shape or parts.args[0].shape != value.shape:
            return value, None
        if not all(
            by_example(t.shape, value.shape[0], a.shape[-1]) for t in (cosines, sines)
        ):
            return value, None
        return parts.args[0], (cosines, sines, [node, parts, *halves])

    def is_causal(self, mask: Any) -> bool:
        """Whether a mask hides the positions after the new one, and nothing else."""
        node = self.maker(mask, "greater_or_equal")
        if node is None or not isinstance(node.args[1], Constant):
            return False
        start, _ = self.viewed(node.args[0])
        keys = _on_host(node.args[1].make())
        if not isinstance(start, Value) or start.place != QUERIES:
            return False
        return bool(np.array_equal(keys.reshape(-1), np.arange(keys.size)))


def asked(node: Node) -> Any:
    """(q, k, v, mask or None, scale) of attention; None for another node."""
    if node.name == "attention":
        if node.args[3] is not None and node.options["blocked"] != -math.inf:
            return None
        return (*node.args, node.options["scale"])
    call = node.lines[0].call
    if len(node.lines) > 1 or call.function is not scaled_dot_product_attention:
        return None
    options = {**node.options}
    q, k, v, *rest = node.args
    mask = rest[0] if rest else options.pop("attn_mask", None)
    if options.get("is_causal") or options.get("softcap"):
        return None
    if not all(isinstance(each, Value) for each in (q, k, v)):
        return None
    return q, k, v, mask, options.get("scale") or q.shape[-1] ** -0.5


def _terms(node: Node) -> Any:
    """("add" or "sub", [(a, b), (c, d)]) of a program a * b +- c * d, or None."""
    code, count = node.options["code"], len(node.args)
    if count != 4 or [step[0] for step in code[:2]] != ["mul", "mul"] or len(code) != 3:
        return None
    if code[2][0] not in ("add", "sub"):
        return None
    if not all(isinstance(arg, Value) for arg in node.args):
        return None
    products = {count + i: [node.args[p] for p in code[i][1:3]] for i in range(2)}
    terms = [products.get(p) for p in code[2][1:3]]
    if None in terms or code[2][1] == code[2][2]:
        return None
    size = node.result.shape[1]
    # The rotated value is the one that has heads.
    ordered = [
        pair
        if pair[0].shape[1] == size and pair[0].shape == node.result.shape
        else pair[::-1]
        for pair in terms
        if pair is not None
    ]
    return code[2][0], ordered


def _key(x: Value, by: Value) -> tuple[int, int]:
    return x.place, by.place


def pair(pair: Any) -> tuple[int, int]:
    return pair[0].place, pair[1].place


def by_example(shape: tuple[int, ...], n: int, last: int) -> bool:
    """Whether an array has a row for each example, or one for all."""
    return (
        shape[-1] == last
        and math.prod(shape[:-1]) in (1, n)
        and (math.prod(shape[:-1]) == 1 or shape[0] == n)
    )


def flat(array: Any) -> Any:
    return array.reshape(-1, array.shape[-1])


def _keeps_order(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(
        item is None
        or item is Ellipsis
        or (isinstance(item, slice) and item.step in (None, 1))
        for item in items
    )


def _on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()
