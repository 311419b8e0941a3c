"""Choose the kind of each layer so that sizes chain (Viterbi, then local search).

Some tensors can be read in two ways: (32, 16, 3, 3) is a convolution from 16 to 32 or a
transposed one from 32 to 16. And a file that sorts its names has lost the order. The
neighbours decide both: the best reading has the fewest layers whose input features
differ from the output features of the layer before. Viterbi's algorithm finds it for
one order; other orders are tried by moving runs of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from burnish.codegen.infer.layers.leaves import EMBEDS, is_named_transposed, shape
from burnish.codegen.infer.tree import Node

_LONGEST = 48
"""A row of more layers keeps its order: moves are tried in cubic time."""
_SHORT = 16
"""In a longer row single layers move, no runs of them."""
_TURNED = 0.3
_DEPTHWISE = 0.35
_GROUPED = 0.5
_JOINED = 0.6
_NAMED = 0.9
"""Less than the cost of a size that does not fit, 1: habits decide among equals."""


@dataclass(frozen=True)
class Reading:
    """The widths that a layer takes and gives, None where unknown.

    step: what it takes is a multiple of this number, in groups; 0: exactly `takes`.
    """

    takes: int | None
    gives: int | None
    turned: bool = False
    step: int = 0
    cost: float = 0.0

    def behind(self, given: int | None) -> float:
        """The cost of standing behind a layer that gives so many features.

        Several results that are joined are a multiple of one, which a norm is not.
        """
        if given is None or self.takes is None or given == self.takes:
            return 0.0
        groups, rest = divmod(given, self.step) if self.step else (0, 1)
        if not rest and groups and self.gives is not None and self.gives % groups == 0:
            return _DEPTHWISE if self.step == 1 else _GROUPED
        joined = given and self.takes % given == 0 and self.takes != self.gives
        return _JOINED if joined else 1.0


_OPEN = (Reading(None, None),)


def readings(node: Node) -> tuple[Reading, ...]:
    """The ways in which a module's own tensors can be read."""
    if node.children or "weight" not in node.tensors:
        mean = shape(node, "running_mean")
        return (Reading(*mean * 2),) if len(mean) == 1 else _OPEN
    size, bias = shape(node, "weight"), shape(node, "bias")
    if len(size) == 1:
        return (Reading(*size * 2),) if size[0] > 1 else _OPEN
    if len(size) == 2:
        return _dense(node, size, bias)
    return _conv(node, size, bias) if 3 <= len(size) <= 5 else _OPEN


def _dense(
    node: Node, size: tuple[int, ...], bias: tuple[int, ...]
) -> tuple[Reading, ...]:
    rows, columns = size
    if EMBEDS.search(node.name):
        return (Reading(None, columns),)
    if bias == (columns,) and rows != columns:
        return (Reading(rows, columns),)
    return (Reading(columns, rows),)


def _conv(
    node: Node, size: tuple[int, ...], bias: tuple[int, ...]
) -> tuple[Reading, ...]:
    first, second = size[:2]
    plain = Reading(second, first, step=second)
    back = Reading(first, second, turned=True, cost=_TURNED)
    if bias and bias[0] != first:
        return (Reading(first, bias[0], turned=True),)
    if first == second or bias:
        return (plain,)
    if is_named_transposed(node):
        plain = Reading(second, first, step=second, cost=_NAMED)
    return plain, back


def chained(row: Sequence[Node]) -> tuple[float, list[Reading]]:
    """The best reading of every layer of a row, and the cost of all of them."""
    best: list[tuple[float, list[Reading]]] = [(0.0, [*_OPEN])]
    for node in row:
        best = [
            min(
                (
                    (
                        cost + reading.cost + reading.behind(path[-1].gives),
                        [*path, reading],
                    )
                    for cost, path in best
                ),
                key=itemgetter(0),
            )
            for reading in readings(node)
        ]
    cost, (_, *found) = min(best, key=itemgetter(0))
    return cost, found


def turned(row: Sequence[Node]) -> frozenset[Node]:
    """The convolutions of a row that are best read as transposed ones."""
    _, found = chained(row)
    return frozenset(n for n, reading in zip(row, found, strict=True) if reading.turned)


def in_chain(row: Sequence[Node]) -> list[Node]:
    """The order of a run of layers whose sizes chain best, near the given one.

    Layers move only where that makes one more size fit.
    """
    order = list(row)
    if len(order) > _LONGEST:
        return order
    cost = chained(order)[0]
    while cost >= 1:
        found, moved = min(
            ((chained(each)[0], each) for each in _moves(order)),
            key=itemgetter(0),
            default=(cost, order),
        )
        if found > cost - 0.5:
            break
        cost, order = found, moved
    return order


def _moves(order: list[Node]) -> list[list[Node]]:
    """Orders with a run of layers moved elsewhere, short runs first."""
    found = []
    longest = len(order) // 2 if len(order) <= _SHORT else 1
    for length in range(1, longest + 1):
        for place in range(len(order) - length + 1):
            run, rest = order[place : place + length], [*order[:place]]
            rest += order[place + length :]
            places = sorted(range(len(rest) + 1), key=lambda to: abs(to - place))
            found += [[*rest[:to], *run, *rest[to:]] for to in places if to != place]
    return found
