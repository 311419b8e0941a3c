"""LSTMs that round their states before each product: a node for all their steps.

Such a layer is captured step by step. A rule finds the steps that hand their states on
to each other and whose results are stacked; the kernel computes them in one record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from burnish.kernels.forms import recurrent_codes_room
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, blocks, strides
from burnish.plan.cpu.lowbit.weights import is_whole, whole
from burnish.plan.cpu.moves.joined import see
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Array, Constant, Graph, Node, Value, constant

_GATES = 4

_DEEPEST = 1 << 15
"""Hidden units whose products of codes have a sum in 32 bits, with zero points'."""

_NAME = "lstm of rounded states"


class _Step(NamedTuple):
    """A step: what it reads, the scheme that rounds h, its gates' order, its nodes."""

    x: Value
    weight: Any  # None where the product of the first h, which is 0, was folded
    h: Any
    c: Any
    scheme: Any
    order: str
    cell: Value
    nodes: list[Node]


def rounded_sequences(graph: Graph) -> None:
    """Replace the steps of each such layer by one node."""
    if graph.program.has_effects or graph.changed:
        return
    if not any(node.name == "calibrated" for node in graph.nodes):
        return
    found = _Finder(graph)
    for node in list(graph.nodes):
        made = found.sequence(node)
        if made is not None:
            gone = {id(line) for line in made.lines}
            place = graph.nodes.index(node)
            graph.nodes[place] = made
            graph.nodes = [
                each
                for each in graph.nodes
                if each is made or id(each.lines[0]) not in gone
            ]


class _Finder:
    """Finds the steps of layers in a graph that is as it was captured."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.makers, self.readers = graph.makers(), graph.readers()
        self.numbers = {id(node): i for i, node in enumerate(graph.nodes)}

    def sequence(self, stacked: Node) -> Node | None:
        """The node of all steps whose results are stacked here."""
        if stacked.name != "concat_of" or stacked.options["axis"] != 0:
            return None
        moves = [self.made(arg, "reshape") for arg in stacked.args]
        if len(moves) < 2 or any(move is None for move in moves):
            return None
        hs = [move.args[0] for move in moves if move is not None]
        for reverse in (False, True):
            steps = self._steps(hs[::-1] if reverse else hs)
            if steps is not None:
                return self._joined(stacked, hs, steps, reverse)
        return None

    def made(self, value: Any, name: str) -> Node | None:
        """The node of this name that gives a value."""
        node = self.makers.get(value.place) if isinstance(value, Value) else None
        return node if node is not None and node.name == name else None

    def _steps(self, hs: list[Any]) -> list[_Step] | None:
        """The steps that give these states, one after another."""
        steps: list[_Step] = []
        for h in hs:
            step = self._step(h)
            if step is None:
                return None
            if steps and not (
                step.h is hs[len(steps) - 1] and step.c is steps[-1].cell
            ):
                return None
            steps.append(step)
        last = steps[-1]
        for step in steps:
            is_first = step is steps[0] and step.weight is None
            if step.order != last.order or not (is_first or _is_alike(step, last)):
                return None
        return steps

    def _step(self, h: Any) -> _Step | None:
        """h = sigmoid(o) * tanh(c), c = sigmoid(f) * before + sigmoid(i) * tanh(new)"""
        out = self.made(h, "mul")
        opened, bent = self._two(out, "sigmoid", "tanh")
        total = self.made(bent.args[0], "add") if bent else None
        if out is None or opened is None or bent is None or total is None:
            return None
        kept, taken = (self.made(arg, "mul") for arg in total.args[:2])
        inward, new = self._two(taken, "sigmoid", "tanh")
        forget = self.made(kept.args[0], "sigmoid") if kept else None
        if not (kept and taken and inward and new and forget):
            return None
        named = {"i": inward, "f": forget, "o": opened, "c": new}
        parts = self.made(inward.args[0], "split")
        if parts is None or len(parts.results) != _GATES or not _is_of_columns(parts):
            return None
        places = [value.place for value in parts.results]
        if sorted(node.args[0].place for node in named.values()) != sorted(places):
            return None
        order = sorted(named, key=lambda gate: places.index(named[gate].args[0].place))
        added = self.made(parts.args[0], "add")
        if added is None:
            return None
        nodes = [added, parts, *named.values(), kept, taken, total, bent, out]
        cell, before = bent.args[0], kept.args[1]
        x, product = added.args[:2]
        read = self._product(product)
        if read is None:
            return None
        weight, state, scheme, more = read
        state = _nothing(cell) if weight is None else state
        return _Step(
            x, weight, state, before, scheme, "".join(order), cell, more + nodes
        )

    def _two(self, node: Node | None, *names: str) -> list[Node | None]:
        """The nodes of these names that give a node's two arguments."""
        given = node.args[: len(names)] if node else [None] * len(names)
        return [self.made(*pair) for pair in zip(given, names, strict=True)]

    def _product(self, value: Any) -> tuple[Any, Any, Any, list[Node]] | None:
        """Weight, h and scheme of a product of rounded states, and its nodes."""
        if isinstance(value, Constant):
            is_nothing = value.dtype == np.float32 and not value.make().any()
            return (None, None, None, []) if is_nothing else None
        product = self.made(value, "linear")
        rounded = self.made(product.args[0], "fake_quantize") if product else None
        if product is None or rounded is None or product.args[2] is not None:
            return None
        h, scale, zero = rounded.args
        ranged = self.made(scale, "calibrated")
        if ranged is None or ranged.args[0] is not h or not _is_affine(ranged, rounded):
            return None
        if [scale, zero] != ranged.results:
            return None
        return product.args[1], h, ranged.options["scheme"], [ranged, rounded, product]

    def _joined(
        self, stacked: Node, hs: list[Any], steps: list[_Step], reverse: bool
    ) -> Node | None:
        """One node of all of them, unless others read the values between."""
        first, last = steps[0], steps[-1]
        inputs = self._inputs([step.x for step in (steps[::-1] if reverse else steps)])
        if inputs is None or last.weight is None or not is_whole(last.weight):
            return None
        x, more = inputs
        ends = [hs[0 if reverse else -1], last.cell]
        count, hidden = ends[0].shape
        if x.dtype != np.float32 or x.shape != (len(steps), count, _GATES * hidden):
            return None
        if last.weight.shape != (_GATES * hidden, hidden) or hidden > _DEEPEST:
            return None
        nodes = [node for step in steps for node in step.nodes]
        nodes += [self.makers[arg.place] for arg in stacked.args] + [*more, stacked]
        if not self._is_closed(nodes, stacked, [value.place for value in ends]):
            return None
        nodes.sort(key=lambda node: self.numbers[id(node)])
        return Node(
            _NAME, [x, last.weight, first.h, first.c],
            {"scheme": last.scheme, "order": last.order, "reverse": reverse},
            [stacked.result, *ends], [line for node in nodes for line in node.lines],
        )  # fmt: skip

    def _inputs(self, parts: list[Value]) -> tuple[Value, list[Node]] | None:
        """The value that each step reads its part of, and the nodes that part it."""
        moves = [self.made(part, "reshape") for part in parts]
        cut = self.made(moves[0].args[0], "split") if moves[0] else None
        if cut is None or cut.options["axis"] != 0:
            return None
        given = [move.args[0] if move else None for move in moves]
        if given != cut.results or not isinstance(cut.args[0], Value):
            return None
        return cut.args[0], [cut, *(move for move in moves if move)]

    def _is_closed(self, nodes: list[Node], end: Node, kept: list[int]) -> bool:
        """Whether others read no result of these nodes, but for `kept` behind `end`."""
        own = {id(node) for node in nodes}
        if len(own) != len(nodes):
            return False
        for node in nodes:
            for value in () if node is end else node.results:
                readers = self.readers.get(value.place, ())
                others = [each for each in readers if id(each) not in own]
                if value.place in kept:
                    if any(self.numbers[id(o)] < self.numbers[id(end)] for o in others):
                        return False
                elif others or value.place in self.graph.results:
                    return False
        return True


def _is_alike(step: _Step, other: _Step) -> bool:
    return step.weight is other.weight and step.scheme == other.scheme


def _is_of_columns(parts: Node) -> bool:
    """Whether a split is of the columns of a matrix, in equal parts."""
    shapes = {value.shape for value in parts.results}
    return len(shapes) == 1 and parts.options["axis"] in (-1, 1)


def _is_affine(ranged: Node, rounded: Node) -> bool:
    """Whether codes of a byte, with one scale and zero point, stand for all values."""
    scheme, size = ranged.options["scheme"], ranged.args[0].size
    is_one = scheme.level.kind == "tensor" and rounded.options["blocks"] == (size,)
    is_byte = scheme.kind.whole and scheme.kind.bits <= 8 and scheme.mode == "affine"
    is_same = rounded.options["value"] == scheme.value and scheme.param == "float32"
    return is_one and is_byte and is_same


def _nothing(cell: Value) -> Constant:
    return constant(np.zeros(cell.shape, np.float32))


@lower(_NAME)
def lstm_of_codes(b: Builder, node: Node) -> None:
    """x (steps, count, gates, hidden) -> every h, the last h and c"""
    x, weight, h, c = node.args
    check(node, x, weight, h, c)
    found = whole(b, weight, False)
    need(found is not None, "its weight is no whole numbers")
    assert found is not None
    steps, count, width = x.shape
    hidden = width // _GATES
    order = tuple(node.options["order"].index(gate) for gate in "ifoc")
    scheme, lanes = node.options["scheme"], found.outs

    def by_gate(numbers: Iterable[Any]) -> Array:
        """Numbers of outputs as (block of hidden units, gate, LANES)."""
        each = np.asarray(numbers).reshape(_GATES, hidden)[list(order)]
        each = np.pad(each, ((0, 0), (0, -hidden % LANES)))
        each = each.reshape(_GATES, blocks(hidden), LANES)
        return np.ascontiguousarray(each.transpose(1, 0, 2))

    hs, last_h, last_c = node.results
    out, b.label = b.result(hs), _NAME
    b.add(
        "recurrent_codes", 1, flops=2 * x.size * hidden, x=b.spot(x),
        weight=b.constant(found.cells(order)),
        scale=b.constant(found.scales(lanes).then(by_gate)),
        zero=b.constant(found.zeros(lanes).then(by_gate)),
        total=b.constant(found.totals(lanes).then(by_gate)),
        h=b.spot(h), c=b.spot(c), hs=out, last=b.result(last_c),
        space=b.new(4 * recurrent_codes_room(count, hidden)), fault=b.fault(),
        steps=steps, count=count, hidden=hidden, reverse=node.options["reverse"],
        low=scheme.kind.low, high=scheme.kind.high,
        **{f"gate{i}": gate for i, gate in enumerate(order)},
    )  # fmt: skip
    end = 0 if node.options["reverse"] else (steps - 1) * count * hidden
    see(b, last_h, out.beyond(end), strides(last_h.shape))
