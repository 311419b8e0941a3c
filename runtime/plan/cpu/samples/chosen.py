"""Which nodes of a plan are worth running once for each sample of a batch."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from burnish.plan.graph import Constant, Graph, Node
from burnish.plan.samples import is_by_sample, read_by

_CACHE = 4e6
"""Bytes of a step's maps up to which they are in cache; beyond, memory is read."""

_MEMORY = 20e-12
"""Seconds for a byte of maps that is read or written in memory and not in cache."""

_COPY = 40e-12
"""Seconds for a byte that enters or leaves a stretch in blocks of channels: a copy."""

_AGAIN, _STREAM = 5e-12, 30e-12
"""Seconds for a byte of weights: read again for a sample, and where it is all that a
product waits for."""

_OPERATION = 4.3e-12
"""Seconds for an operation of a product."""

_SMALL, _TAILS = 900, 0.05
"""Pixels of a sample up to which tiles are cut badly, and the part that this costs."""

_OUTPUTS = 32
"""Outputs of a group, for which a product with many weights reads all of its maps."""

_LEAST = 50e-6
"""Seconds that a stretch has to save."""

_QUANTIZED = {"calibrated", "fake_quantize", "from_quantized"}
"""Nodes of networks whose values may be codes, which have no place in a batch here."""

_MOVES = ("reshape", "transpose", "split", "getitem")
"""Nodes that are often views, which move nothing."""


class Stretch(NamedTuple):
    """Nodes from `first` on to the one before `behind`."""

    first: int
    behind: int


def stretches(graph: Graph) -> list[Stretch]:
    """What to run by sample, in order; nothing of a graph with effects."""
    names = {node.name for node in graph.nodes}
    if graph.program.has_effects or graph.changed or names & _QUANTIZED:
        return []
    found: list[Stretch] = []
    for batch in _batches(graph):
        start = 0
        fits = [is_by_sample(node, batch) for node in graph.nodes]
        for fit, run in itertools.groupby(fits):
            behind = start + len(list(run))
            if fit:
                found += _best(graph, Stretch(start, behind), batch)
            start = behind
    return _apart(sorted(found))


def _batches(graph: Graph) -> set[int]:
    """Sizes of first axes that maps have."""
    shapes = [v.shape for node in graph.nodes for v in node.results]
    return {shape[0] for shape in shapes if len(shape) > 2 and shape[0] > 1}


def _apart(found: list[Stretch]) -> list[Stretch]:
    """Those that have no node in common with one before."""
    kept: list[Stretch] = []
    for each in found:
        if not kept or each.first >= kept[-1].behind:
            kept.append(each)
    return kept


def _best(graph: Graph, run: Stretch, batch: int) -> list[Stretch]:
    """The parts of a run of nodes that save most, less what their ends cost."""
    nodes = graph.nodes[run.first : run.behind]
    gains = [0.0, *itertools.accumulate(_gain(node, batch) for node in nodes)]
    ends = _ends(graph, run)
    start, most, found = 0, _LEAST, None
    for i in range(1, len(gains)):
        saved = gains[i] - ends[i] - gains[start] - ends[start]
        if saved > most:
            most, found = saved, Stretch(run.first + start, run.first + i)
        if gains[i] + ends[i] < gains[start] + ends[start]:
            start = i
    if found is None:
        return []
    before, after = Stretch(run.first, found.first), Stretch(found.behind, run.behind)
    return [*_best(graph, before, batch), found, *_best(graph, after, batch)]


def _gain(node: Node, batch: int) -> float:
    """The seconds that a node takes less by sample."""
    if node.name in _MOVES:
        return 0.0
    maps = 4 * sum(value.size for value in (*read_by(node), *node.results))
    saved = _from_memory(maps) - batch * _from_memory(maps / batch)
    weight = node.args[1] if node.name in ("conv", "conv_transpose", "linear") else None
    if isinstance(weight, Constant):
        saved += _read_again(node, weight, batch) - _lost(node, weight, batch)
    return saved


def _from_memory(size: float) -> float:
    """The seconds to read feature maps of so many bytes; a part is in cache."""
    return _MEMORY * max(0.0, size - _CACHE)


def _read_again(node: Node, weight: Constant, batch: int) -> float:
    """The seconds for maps that a product reads once for each group of outputs."""
    x, outs = node.args[0], node.result.shape[1]
    places = 4 * (node.result.size // outs) * x.shape[1]
    if node.name == "linear" or weight.bytes <= places:
        return 0.0
    again = outs // _OUTPUTS
    return again * (_from_memory(4 * x.size) - batch * _from_memory(4 * x.size / batch))


def _lost(node: Node, weight: Constant, batch: int) -> float:
    """The seconds that products of one sample take more."""
    ins = node.args[0] if node.name == "conv_transpose" else node.result
    per = weight.size // weight.shape[1 if node.options.get("turned") else 0]
    products = 2 * ins.size * per * _OPERATION
    reading = weight.bytes * _STREAM
    one = max(products / batch, reading)
    lost = batch * one - max(products, reading)
    if node.result.size // (batch * node.result.shape[1]) <= _SMALL:
        lost += _TAILS * products
    return lost + (batch - 1) * weight.bytes * _AGAIN


def _ends(graph: Graph, run: Stretch) -> list[float]:
    """What it costs to begin, or to end, before each node of a run and behind it."""
    made: dict[int, tuple[int, int]] = {}
    last: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        last.update((place, i) for place in node.reads)
        made.update((value.place, (i, 4 * value.size)) for value in node.results)
    costs = [0.0] * (len(graph.nodes) + 1)
    for place, (i, size) in made.items():
        for j in range(i + 1, last.get(place, i) + 1):
            costs[j] += size * _COPY
    return costs[run.first : run.behind + 1]
