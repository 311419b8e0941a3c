"""Nodes that treat each sample of a batch independently, and the same nodes for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.plan.graph import Constant, Node, Value
from burnish.plan.rewrites.gates import GATE


def is_by_sample(node: Node, batch: int) -> bool:
    """Whether f(x)[n] is f(x[n : n + 1]) along the first axis, which has `batch`."""
    rule = _RULES.get(node.name)
    if rule is None:
        return False
    values = read_by(node)
    for value in (*values, *node.results):
        if value.dtype != np.float32 or len(value.shape) < 2:
            return False
        if value.shape[0] != batch:
            return False
    return bool(values) and rule(node)


def read_by(node: Node) -> list[Value]:
    """The values among a node's arguments, and its gate."""
    items = (*node.args, node.options.get(GATE))
    return [item for item in items if isinstance(item, Value)]


class OneSample:
    """Gives nodes for the first sample of a batch: values of their own, batch 1.

    make: gives a new value of a shape.
    """

    def __init__(self, make: Callable[[tuple[int, ...]], Value]):
        self._make = make
        self._values: dict[int, Value] = {}

    def value(self, whole: Value) -> Value:
        if whole.place not in self._values:
            self._values[whole.place] = self._make((1, *whole.shape[1:]))
        return self._values[whole.place]

    def node(self, whole: Node) -> Node:
        args = [self.value(a) if isinstance(a, Value) else a for a in whole.args]
        results = [self.value(each) for each in whole.results]
        options = dict(whole.options)
        if isinstance(gate := options.get(GATE), Value):
            options[GATE] = self.value(gate)
        made = Node(whole.name, args, options, results, whole.lines, whole.act)
        made.read({value.place for value in read_by(made)})
        return made


def _any(node: Node) -> bool:
    return True


def _weighs(node: Node) -> bool:
    """Whether parameters are the weights of a product or a convolution."""
    x, weight, bias, *residual = node.args
    weights = isinstance(weight, Constant) and not isinstance(bias, Value)
    return isinstance(x, Value) and weights and all(_is_value(r) for r in residual)


def _is_value(arg: Any) -> bool:
    return arg is None or isinstance(arg, Value)


def _is_elementwise(node: Node) -> bool:
    """Whether no parameter differs from one sample to the next."""
    rank = len(node.result.shape)
    for arg in node.args:
        if isinstance(arg, Value) and len(arg.shape) != rank:
            return False
        if isinstance(arg, Constant) and len(arg.shape) >= rank and arg.shape[0] != 1:
            return False
    return True


def _axes(name: str, default: Any = None) -> Callable[[Node], bool]:
    """Whether an option's axes leave the first one alone; None is all of them."""

    def check(node: Node) -> bool:
        axes = node.options.get(name, default)
        if axes is None:
            return False
        rank = len(node.args[0].shape)
        every = axes if isinstance(axes, tuple | list) else (axes,)
        return isinstance(node.args[0], Value) and all(a % rank for a in every)

    return check


def _keeps_first(node: Node) -> bool:
    axes = node.options["axes"]
    return axes is not None and axes[0] == 0


def _takes_whole(node: Node) -> bool:
    """Whether an index takes every sample."""
    index = node.options["index"]
    every = index if isinstance(index, tuple) else (index,)
    if not every or not all(isinstance(i, slice | int) for i in every):
        return False
    first = every[0]
    size = node.args[0].shape[0]
    return isinstance(first, slice) and first.indices(size) == (0, size, 1)


def _pads_none(node: Node) -> bool:
    return tuple(node.options["pads"][0]) == (0, 0)


def _all_values(node: Node) -> bool:
    return all(isinstance(arg, Value) for arg in node.args)


def _joins(node: Node) -> bool:
    return _all_values(node) and _axes("axis")(node)


def _has_given_scales(node: Node) -> bool:
    return all(not isinstance(scale, Value) for scale in node.args[1:])


def _norms(node: Node) -> bool:
    return _has_given_scales(node) and _axes("axis")(node)


_RULES: dict[str, Callable[[Node], bool]] = {
    "conv": _weighs,
    "conv_transpose": _weighs,
    "linear": _weighs,
    "program": _is_elementwise,
    "max_pool": _any,
    "window_sum": _any,
    "reduce_mean": _axes("axes"),
    "reduce_sum": _axes("axes"),
    "reduce_max": _axes("axes"),
    "softmax": _axes("axis", -1),
    "log_softmax": _axes("axis", -1),
    "group_norm_of": _has_given_scales,
    "layer_norm_from": _norms,
    "rms_norm_from": _norms,
    "concat_of": _joins,
    "reshape": _any,
    "transpose": _keeps_first,
    "split": _axes("axis"),
    "getitem": _takes_whole,
    "pad_constant": _pads_none,
    "pad_repeated": _axes("axis"),
    "resample": _axes("axis"),
    "take_slices": _axes("axis"),
}
"""By a node's name: whether, with its options, it treats samples alone. Shapes and
types of values are looked at before."""
