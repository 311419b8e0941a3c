"""Fusing: rules that join nodes, so that a result is not stored to be read again.

A rule is given a node, who gives its arguments and who else reads them, and returns the
node that replaces both, or None. Results differ by rounding at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.kernels.elementwise import activation as known_activation
from burnish.ops._kernels.window import pairs
from burnish.plan.graph import (
    Array,
    Constant,
    Graph,
    Node,
    Value,
    changed_by,
    combined,
)
from burnish.plan.rewrites.attention import attend, turn_back
from burnish.plan.rewrites.fold import scale_and_shift
from burnish.plan.rewrites.gates import gated_conv
from burnish.plan.rewrites.norms import NORM, bounded_norm, gated_norm
from burnish.plan.rewrites.programs import chain, to_program
from burnish.plan.rewrites.slopes import slope


class Around:
    """Queries of a graph for rules: a value's producer, whether it has one reader."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.makers = graph.makers()
        self.readers = graph.readers()

    def replace(self, gone: list[Node | None], made: Node) -> None:
        """Note that one node replaces others now."""
        for value in made.results:
            self.makers[value.place] = made
        for place in made.reads:
            left = [each for each in self.readers.get(place, ()) if each not in gone]
            self.readers[place] = [*left, made]

    def only(self, value: Any, *names: str) -> Node | None:
        """The node of one of these names that gives a value which one other reads."""
        if not isinstance(value, Value) or value.place in self.graph.results:
            return None
        node = self.makers.get(value.place)
        if node is None or node.name not in names or len(node.results) > 1:
            return None
        return node if len(self.readers.get(value.place, ())) == 1 else None


Rule = Callable[[Node, Around], "Node | None"]

_PRODUCTS = ("conv", "conv_transpose", "linear")


def fuse(graph: Graph, off: frozenset[str] = frozenset()) -> None:
    """Apply every rule to every node, in the table's order, but what `off` names."""
    for rule in RULES:
        if rule.__name__ not in off:
            _apply(graph, rule)


def _apply(graph: Graph, rule: Rule) -> None:
    around = Around(graph)
    nodes: list[Node | None] = list(graph.nodes)
    owner = {id(line): i for i, node in enumerate(graph.nodes) for line in node.lines}
    changes: dict[int, list[int]] = {}  # of a parameter or buffer: at which nodes
    for i, node in enumerate(graph.nodes):
        for changed in changed_by(node):
            changes.setdefault(changed, []).append(i)
    for i, node in enumerate(graph.nodes):
        made = rule(node, around)
        if made is None:
            continue
        joined = {owner[id(line)] for line in made.lines}
        gone = [nodes[j] for j in joined]
        place = min(joined) if made.name == NORM else i
        if any(_reads_across(changes, nodes[j], j, place) for j in joined):
            continue
        for j in joined:
            nodes[j] = None
        nodes[place] = made
        owner.update((id(line), place) for line in made.lines)
        around.replace(gone, made)
    graph.nodes = [each for each in nodes if each is not None]


def _reads_across(
    changes: dict[int, list[int]], node: Node | None, i: int, place: int
) -> bool:
    """Whether a node reads what another one changes between two places of the graph."""
    if node is None or i == place or not changes:
        return False
    low, high = min(i, place), max(i, place)
    read = node.reads & changes.keys()
    return any(low < at < high for each in read for at in changes[each])


def _joined(first: Node, last: Node, **changes: Any) -> Node:
    """`first` with the result, and the lines, of `last` too."""
    lines = first.lines + [each for each in last.lines if each not in first.lines]
    return Node(
        changes.get("name", first.name),
        changes.get("args", first.args),
        changes.get("options", first.options),
        last.results,
        lines,
        changes.get("act", first.act),
    )


def product(node: Node, around: Around) -> Node | None:
    """matmul with a matrix of parameters -> linear."""
    if node.name != "matmul" or not isinstance(node.args[1], Constant):
        return None
    if len(node.args[1].shape) != 2 or not isinstance(node.args[0], Value):
        return None
    return Node(
        "linear", [*node.args, None], {"turned": True}, node.results, node.lines
    )


def cast_choice(node: Node, around: Around) -> Node | None:
    """A choice of two numbers, which NumPy makes in float64, and a cast -> a choice."""
    if node.name != "cast" or node.result.dtype != np.float32:
        return None
    made = around.only(node.args[0], "where")
    if made is None or made.result.shape != node.result.shape:
        return None
    mask, *numbers = made.args
    if not all(isinstance(n, int | float) for n in numbers):
        return None
    with np.errstate(over="ignore"):
        rounded = [float(np.float32(n)) for n in numbers]
    return _joined(made, node, args=[mask, *rounded])


def swish(node: Node, around: Around) -> Node | None:
    """x * sigmoid(x) -> swish(x)"""
    if node.name != "mul":
        return None
    for x, gate in (node.args, node.args[::-1]):
        maker = around.only(gate, "sigmoid")
        if maker is not None and maker.args[0] is x:
            return _joined(maker, node, name="swish", args=[x], options={"alpha": 1.0})
    return None


def padded_conv(node: Node, around: Around) -> Node | None:
    """Zeros around the input of a convolution -> its padding."""
    if node.name != "conv":
        return None
    pad = around.only(node.args[0], "pad_constant")
    if pad is None or pad.options["value"] != 0:
        return None
    pads = pad.options["pads"]
    rank = len(pads) - 2
    flat = [n for pair in pads for n in pair]
    if (
        min(flat) < 0
        or any(flat[:4])
        or not isinstance(node.options["padding"], int | tuple)
    ):
        return None
    spans = (1,) * rank
    own = pairs(node.options["padding"], spans, spans, spans, "padding")
    whole = tuple((a + c, b + d) for (a, b), (c, d) in zip(pads[2:], own, strict=True))
    made = _joined(pad, node, name="conv", args=[pad.args[0], *node.args[1:]])
    made.options = {**node.options, "padding": whole}
    return made


def mean_of_window(node: Node, around: Around) -> Node | None:
    """The sum of a window times a number, or a number for each place -> one step."""
    if node.name not in ("mul", "div"):
        return None
    x, factor = node.args
    made = around.only(x, "window_sum")
    if made is None or made.options.keys() & {"scale", "scales"}:
        return None
    if isinstance(factor, Constant):
        is_map = factor.shape == node.result.shape[2:] and factor.dtype == np.float32
        if not is_map or node.name == "div":
            return None
        return _joined(made, node, options={**made.options, "scales": factor})
    if not isinstance(factor, int | float) or isinstance(factor, bool) or not factor:
        return None
    scale = factor if node.name == "mul" else 1 / factor
    return _joined(made, node, options={**made.options, "scale": float(scale)})


def normed_conv(node: Node, around: Around) -> Node | None:
    """A batch norm after a convolution -> other weights."""
    if node.name != "batch_norm":
        return None
    conv = around.only(node.args[0], "conv", "conv_transpose")
    if conv is not None and conv.name != "conv" and conv.options["groups"] > 1:
        return None
    moved = scale_and_shift(node) if conv is not None else None
    if conv is None or moved is None or not isinstance(conv.args[1], Constant):
        return None
    if not isinstance(conv.args[2], Constant | None):
        return None
    return _scaled(conv, node, *moved)


def channelled(node: Node, around: Around) -> Node | None:
    """A number for each channel behind a convolution, times or plus -> its weights."""
    if node.name not in ("mul", "add"):
        return None
    for x, other in (node.args, node.args[::-1]):
        made = around.only(x, "conv", "conv_transpose")
        if made is None or made.act[0] != "none" or len(made.args) != 3:
            continue
        _, weight, bias = made.args
        is_grouped = made.name != "conv" and made.options["groups"] > 1
        known = isinstance(weight, Constant) and isinstance(bias, Constant | None)
        if is_grouped or not known or not _is_by_channel(other, node, made):
            continue
        flat = other.then(lambda a: a.reshape(-1))
        if node.name == "mul":
            return _scaled(made, node, flat)
        moved = flat if bias is None else combined(np.add, bias, flat)
        return _joined(made, node, args=[*made.args[:2], moved])
    return None


def _is_by_channel(other: Any, node: Node, made: Node) -> bool:
    """Whether an operand has one number for each channel of a convolution's result."""
    y = made.result
    if not isinstance(other, Constant) or other.dtype != np.float32:
        return False
    sizes = (1,) * (len(y.shape) - len(other.shape)) + other.shape
    wanted = (1, y.shape[1], *(1 for _ in y.shape[2:]))
    return sizes == wanted and y.shape == node.result.shape and y.dtype == np.float32


def _scaled(
    conv: Node, last: Node, by: Constant, shift: Constant | None = None
) -> Node:
    """A convolution whose result is multiplied, and shifted, by channel."""
    x, weight, bias = conv.args
    axis = 0 if conv.name == "conv" else 1

    def scaled(w: Array, f: Array) -> Array:
        return w * f.reshape(*(-1 if a == axis else 1 for a in range(w.ndim)))

    def shifted(f: Array, s: Array | None, b: Array | None) -> Array:
        return b * f if s is None else s if b is None else s + b * f

    if shift is not None or bias is not None:
        bias = combined(shifted, by, shift, bias)
    return _joined(conv, last, args=[x, combined(scaled, weight, by), bias])


def biased(node: Node, around: Around) -> Node | None:
    """A vector of parameters added to a product -> its bias."""
    if node.name != "add":
        return None
    for x, bias in (node.args, node.args[::-1]):
        made = around.only(x, "linear")
        if made is None or not isinstance(bias, Constant) or made.act[0] != "none":
            continue
        if made.args[2] is None and bias.shape == made.result.shape[-1:]:
            return _joined(made, node, args=[*made.args[:2], bias])
    return None


def with_residual(node: Node, around: Around) -> Node | None:
    """Another value added to a product -> added before it is stored."""
    if node.name != "add":
        return None
    for x, other in (node.args, node.args[::-1]):
        made = around.only(x, *_PRODUCTS)
        if made is None or not isinstance(other, Value) or made.act[0] != "none":
            continue
        is_depthwise = made.name != "linear" and made.options["groups"] > 1
        same = other.shape == made.result.shape == node.result.shape
        if (
            same
            and len(made.args) == 3
            and other.dtype == np.float32
            and not is_depthwise
        ):
            return _joined(made, node, args=[*made.args, other])
    return None


def activated(node: Node, around: Around) -> Node | None:
    """A function of the result of a product -> applied before it is stored."""
    act = activation(node)
    if act is None:
        return None
    made = around.only(node.args[0], *_PRODUCTS)
    if made is None or made.act[0] != "none":
        return None
    return _joined(made, node, act=act)


def activation(node: Node) -> tuple[str, float, float] | None:
    """The kernels' name of an elementwise activation, with its two numbers."""
    if node.name != "clip":
        return known_activation(node.name, node.options)
    low, high = node.args[1:]
    if not all(isinstance(bound, int | float | None) for bound in (low, high)):
        return None
    low = -np.inf if low is None else float(low)
    return "clip", low, np.inf if high is None else float(high)


def programs(node: Node, around: Around) -> Node | None:
    """An element-wise operator, or an activation's gradient -> a program."""
    return slope(node) or to_program(node, activation(node))


RULES: tuple[Rule, ...] = (
    bounded_norm,
    gated_norm,
    cast_choice,
    product,  # so that the next ones see products alone
    swish,
    padded_conv,
    mean_of_window,
    normed_conv,  # before residuals, which are added behind it
    channelled,  # before residuals, which are added behind it
    biased,
    attend,  # before element-wise steps are joined, which it is made of
    turn_back,
    with_residual,
    activated,
    gated_conv,
    programs,  # last: the element-wise nodes that no other rule took
    chain,
)
