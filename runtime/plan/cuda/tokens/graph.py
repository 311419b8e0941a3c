"""A step of one token as launches: products of few rows, attention over the cache.

The program's calls are fused by the rules that a CPU's plans have. Products go with the
norm before them and the sum behind them, those of one value are one launch, and so is
attention with the rotation of queries and keys and the write to the cache. What is left
runs as its calls do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.backend.cuda.decoding import decode_attention, few_rows
from burnish.backend.cuda.norms import residual
from burnish.caches import write
from burnish.capture import CaptureError, Program
from burnish.plan.cuda.tokens.narrow import NORMS, Narrow, is_by_row, normed
from burnish.plan.cuda.tokens.nodes import QUERIES, Nodes, asked, by_example, flat, pair
from burnish.plan.cuda.tokens.weights import Weights
from burnish.plan.graph import Constant, Node, Value

Launch = Callable[[list[Any]], None]
"""Computes results from values at their places."""


class Launches:
    """What computes a program's results for one new position.

    half: the half precision of products, of weights and of the cache; "" for none.
    """

    def __init__(self, program: Program, weights: Weights, half: str):
        self._nodes = Nodes(program)
        self._graph, self._weights, self.half = self._nodes.graph, weights, half
        self._gone: set[int] = set()  # nodes that another one's launch computes
        self._by_node: dict[int, Launch] = {}
        self._needs: dict[int, set[int]] = {}  # the places that such a launch reads
        self._narrow = Narrow(self._nodes, half)
        for node in self._graph.nodes:
            self._attention(node)
        for node in self._graph.nodes:
            self._gated(node)
        for node in self._graph.nodes:
            self._product(node)
        for node in self._graph.nodes:
            self._norm(node)
        self.fits_half = not any(
            node.name == "put" and id(node) not in self._gone
            for node in self._graph.nodes
        )
        self.every = [self._by_node.get(id(n)) or _plain(n) for n in self._alive()]

    def _alive(self) -> list[Node]:
        """The nodes that have a launch, and whose results are asked for."""
        asked, found = set(self._graph.results), []
        for node in reversed(self._graph.nodes):
            if id(node) in self._gone:
                continue
            is_write = node.name == "put" or any(
                line.call.always for line in node.lines
            )
            if is_write or any(result.place in asked for result in node.results):
                asked |= self._needs.get(id(node), node.reads)
                found.append(node)
        return found[::-1]

    @property
    def count(self) -> tuple[int, int]:
        """How many nodes have launches of their own here, and how many there are."""
        return len(self._by_node), len(self.every)

    # --- attention ---

    def _attention(self, node: Node) -> None:
        found = asked(node)
        if found is None:
            return
        q, k, v, mask, scale = found
        puts = [self._nodes.maker(part, "put") for part in (k, v)]
        if any(
            each is None or each.lines[0].call.function is not write for each in puts
        ):
            return
        if any(len(each.shape) != 4 for each in (q, k, v)) or q.shape[2] != 1:
            return
        n, heads, _, size = q.shape
        rooms = [each.args[0] for each in puts if each is not None]
        fresh = [each.args[1] for each in puts if each is not None]
        if v.shape != k.shape or not decode_attention.takes(heads, k.shape[1], size):
            return
        if isinstance(mask, Constant) or (mask is not None and mask.dtype != bool):
            return
        mask = None if self._nodes.is_causal(mask) else mask
        if mask is not None and not by_example(mask.shape, n, k.shape[2]):
            return
        both = all(self._nodes.alone(part) for part in (k, v)) and k.place != v.place
        store = both and all(each.shape[2] == 1 for each in fresh)
        angles = None
        if store:
            (turned_q, turns), (turned_k, others) = (
                self._nodes.turned(each) for each in (q, fresh[0])
            )
            if turns and others and pair(turns) == pair(others):
                q, fresh[0], angles = turned_q, turned_k, turns[:2]
                self._gone |= {id(each) for each in (*turns[2], *others[2])}
            self._gone |= {id(each) for each in puts}
        places = q.place, *(each.place for each in (*fresh, *rooms))
        at, out = node.result.place, node.result
        cosines = None if angles is None else tuple(each.place for each in angles)
        shown = None if mask is None else mask.place
        room = self._weights.room(n, heads, k.shape[1], size, k.shape[2])

        def launch(values: list[Any]) -> None:
            asked, *new, keys, held = (values[place].data for place in places)
            turn = None
            if cosines is not None:
                turn = tuple(values[p].data.reshape(-1, size // 2) for p in cosines)
            y = decode_attention.attended(
                asked[:, :, 0],
                tuple(each[:, :, 0] for each in new) if store else None,
                (keys, held),
                values[QUERIES].data,
                room,
                scale=scale,
                angles=turn,
                mask=None if shown is None else flat(values[shown].data),
                out=self._narrow.dtype(out, n),
            )
            values[at] = _like(values[places[0]], y.reshape(out.shape))

        self._by_node[id(node)] = launch
        self._needs[id(node)] = {
            *places,
            *(cosines or ()),
            *(() if shown is None else (shown,)),
        }

    # --- products ---

    def _gated(self, node: Node) -> None:
        """act(x @ gate.T) * (x @ up.T)"""
        if node.name != "program" or len(node.args) != 2:
            return
        if [(s[0], *sorted(s[1:3])) for s in node.options["code"]] != [("mul", 0, 1)]:
            return
        pair = [self._nodes.maker(arg, "linear") for arg in node.args]
        if any(
            m is None or len(m.args) != 3 or not self._nodes.alone(m.result)
            for m in pair
        ):
            return
        first, second = sorted(
            (m for m in pair if m is not None), key=lambda m: m.act[0] == "none"
        )
        if first is second or second.act[0] != "none":
            return
        if (
            first.args[0] is not second.args[0]
            or first.result.shape != second.result.shape
        ):
            return
        if self._launch([first, second], node, gated=True):
            self._gone |= {id(first), id(second)}

    def _product(self, node: Node) -> None:
        if node.name != "linear" or id(node) in self._gone or id(node) in self._by_node:
            return
        beside = [node]
        if node.act[0] == "none" and len(node.args) == 3:
            beside = [
                other
                for other in self._nodes.readers.get(
                    getattr(node.args[0], "place", -1), ()
                )
                if other.name == "linear"
                and other.args[0] is node.args[0]
                and other.act[0] == "none"
                and len(other.args) == 3
                and id(other) not in self._gone
                and id(other) not in self._by_node
            ][:4]
        if not self._launch(beside, node) and len(beside) > 1:
            self._launch([node], node)

    def _launch(self, nodes: list[Node], last: Node, gated: bool = False) -> bool:
        """Have one launch compute products of one value; False where none does."""
        node = nodes[0]
        x, act = node.args[0], node.act
        if not isinstance(x, Value) or x.dtype != np.float32:
            return False
        if act[0] not in few_rows.ACTIVATIONS:
            return False
        weights = [self._weights.find(each, self.half) for each in nodes]
        known = [each for each in weights if each is not None]
        if len(known) < len(weights):
            return False
        rows = x.size // known[0].ins
        if not few_rows.takes(rows, known, self.half):
            return False
        norm, x = self._normed(x, nodes, rows)
        beside = node.args[3].place if len(node.args) > 3 else None
        place, shapes = (
            x.place,
            [(each.result.place, each.result.shape) for each in nodes],
        )
        out: Any = np.float32
        if gated:
            shapes = [(last.result.place, last.result.shape)]
            readers = self._nodes.readers.get(last.result.place, ())
            fine = all(r.name == "linear" and r.args[0] is last.result for r in readers)
            if self.half == "float16" and fine and self._nodes.alone(last.result):
                out = np.float16
        by, only = (act[0], act[1]), nodes[0].result if len(nodes) == 1 else None

        def launch(values: list[Any]) -> None:
            given = values[place]
            y = few_rows.product(
                given.data.reshape(rows, -1),
                known,
                half=self.half,
                act=by,
                gated=gated,
                norm=norm,
                residual=None
                if beside is None
                else values[beside].data.reshape(rows, -1),
                out=out if only is None else self._narrow.dtype(only, rows),
            )
            start = 0
            for at, shape in shapes:
                part = y[:, start : start + shape[-1]]
                start += shape[-1]
                values[at] = _like(given, part.reshape(shape))

        owner = last if gated else nodes[0]
        self._by_node[id(owner)] = launch
        self._needs[id(owner)] = {place, *(() if beside is None else (beside,))}
        self._gone |= {id(each) for each in nodes if each is not owner}
        self._narrow.multiplied |= set(map(id, nodes))
        return True

    def _normed(self, x: Value, nodes: list[Node], rows: int) -> tuple[Any, Value]:
        """(the norm before products, its argument); (None, x) where there is none."""
        given, through = self._nodes.viewed(x)
        node, ins = self._nodes.maker(given, *NORMS), x.shape[-1]
        if node is None or not few_rows.takes_norm(rows, ins, self.half):
            return None, x
        if not is_by_row(node):
            return None, x
        between = [given, *(each.result for each in through[1:])] if through else []
        readers = self._nodes.readers.get(x.place, ())
        here = {id(each) for each in nodes}
        if x.place in self._graph.results or any(id(r) not in here for r in readers):
            return None, x
        if not all(map(self._nodes.alone, between)):
            return None, x
        self._gone |= {id(node), *map(id, through)}
        return self._weights.norm(NORMS[node.name], node), node.args[0]

    # --- norms, and what only products read ---

    def _norm(self, node: Node) -> None:
        """A norm in half precision, where only products read it."""
        if node.name not in NORMS or id(node) in self._gone or not is_by_row(node):
            return
        given, made = node.args[0], node.result
        ins, kind = given.shape[-1], NORMS[node.name]
        rows = given.size // ins
        if not isinstance(given, Value) or not residual.fits(ins):
            return
        if self._narrow.dtype(made, rows) == np.float32:
            return
        by = self._weights.norm(kind, node)

        def launch(values: list[Any]) -> None:
            x = values[given.place]
            y = normed(x.data.reshape(rows, ins), by)
            values[made.place] = _like(x, y.reshape(made.shape))

        self._by_node[id(node)] = launch
        self._needs[id(node)] = {given.place}


def _plain(node: Node) -> Launch:
    """The node's calls as they are; a write to the cache by a kernel."""
    if node.name == "put" and node.lines[0].call.function is write:
        room, new, _ = (each.place for each in node.args)

        def wrote(values: list[Any]) -> None:
            held = values[room]
            rows = values[new].data
            decode_attention.put(held.data, rows[:, :, 0], values[QUERIES].data)
            values[node.result.place] = held

        if node.args[1].shape[2] != 1:
            raise CaptureError("a step of several positions")
        return wrote

    def run(values: list[Any]) -> None:
        for line in node.lines:
            line.make(values)

    return run


def _like(tensor: Any, array: Any) -> Any:
    return type(tensor).wrap(array, tensor.device)
