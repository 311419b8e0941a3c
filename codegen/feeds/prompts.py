"""Inputs of searches: prompts within the vocabulary, and lengths that go together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops import find
from burnish.codegen.passes.graph import scalar
from burnish.codegen.readers import parts_of

_SEARCHES = frozenset(("BeamSearch", "GreedySearch", "Sampling"))
_NEW = 8
"""Tokens behind a prompt."""
_MOST_BEAMS = 4
_PENALTY = 1.25


def _slots(node: ir.Node) -> Iterator[tuple[str, ir.Value]]:
    """The inputs that a search has, by the names of its rule."""
    rule = find(node.domain, node.op_type, 1)
    assert rule is not None
    names = inspect.signature(rule.function).parameters
    for name, value in zip(names, node.inputs, strict=False):
        if value is not None:
            yield name, value


def inputs(
    model: ir.Model,
    made: Mapping[str, np.ndarray],
    given: Mapping[str, np.ndarray],
    limit: Callable[[ir.Value], int],
    random: Callable[[str], np.random.Generator],
) -> dict[str, np.ndarray]:
    """Inputs of the graph that searches read, in place of those that were made.

    given: inputs that stay. limit: what ids that a graph's input takes stay below.
    random: an input's own source.
    """
    found: dict[str, np.ndarray] = {}
    for node in model.graph:
        if node.domain == "burnish" and node.op_type in _SEARCHES:
            search = _Search(model, node, {**made, **found}, {*given}, limit, random)
            found |= search.inputs()
    return found


class _Search:
    """One search, and what its inputs are so far."""

    def __init__(
        self,
        model: ir.Model,
        node: ir.Node,
        made: Mapping[str, np.ndarray],
        given: set[str],
        limit: Callable[[ir.Value], int],
        random: Callable[[str], np.random.Generator],
    ):
        self.node, self.made, self.given, self.random = node, made, given, random
        self.slots = dict(_slots(node))
        parts = parts_of(model)
        named = (node.attributes.get(n) for n in ("decoder", "first", "encoder"))
        graphs = [parts[each.as_string()].graph for each in named if each is not None]
        logits = graphs[0].outputs[0].shape
        words = logits[-1] if logits else None
        held = node.attributes.get("vocab_size")
        counts = [words if isinstance(words, int) else 0, held.as_int() if held else 0]
        limits = [limit(graph.inputs[0]) for graph in graphs]
        self.vocabulary = min(n for n in (*limits, *counts) if n > 0)
        self.words = min((n for n in counts if n > 0), default=self.vocabulary)

    def inputs(self) -> dict[str, np.ndarray]:
        chosen = self._numbers()
        special = {
            self.node.attributes[f"{n}_token_id"].as_int() for n in ("eos", "pad")
        }
        words = [n for n in range(self.vocabulary) if n not in special] or [0]
        found = {}
        for slot, value in self.slots.items():
            name = value.name or ""
            if name not in self.made or name in self.given:
                continue
            old, random = self.made[name], self.random(name)
            if slot == "input_ids":
                new = random.choice(words, old.shape)
            elif slot == "attention_mask":
                new = np.ones(old.shape)
                new[-1:, : old.shape[-1] - 1 and 1] = 0
            elif slot.endswith("mask"):
                new = random.random((*old.shape[:-1], self.words)) < 0.75
            else:
                new = np.full(old.shape, chosen[slot])
            found[name] = new.astype(old.dtype)
        return found

    def _numbers(self) -> dict[str, float]:
        """Numbers of the search: those that are known, and others that fit them."""
        known = {slot: self._known(value) for slot, value in self.slots.items()}
        ids = self.made.get(self.slots["input_ids"].name or "")
        length = ids.shape[-1] if ids is not None else 1
        least, most = known.get("min_length"), known.get("max_length")
        if most is None:
            most = max(length, least or 0) + _NEW
        if least is None:
            least = min(length + 2, most - 1)
        beams, kept = known.get("num_beams"), known.get("num_return_sequences")
        if beams is None:
            beams = max(_MOST_BEAMS, kept or 1)
        return {
            "max_length": most,
            "min_length": least,
            "num_beams": beams,
            "num_return_sequences": min(2, beams) if kept is None else kept,
            "length_penalty": _PENALTY,
            "repetition_penalty": _PENALTY,
            "seed": 1,
        }

    def _known(self, value: ir.Value) -> float | None:
        """The number that the file or a given input has; None for others."""
        name = value.name or ""
        if name in self.given:
            array = self.made[name]
            return float(array.item()) if array.size == 1 else None
        return scalar(value)
