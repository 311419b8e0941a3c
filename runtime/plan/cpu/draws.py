"""Random numbers: each run of a segment draws anew what its records read.

Of dropout's masks that is a key; any other draw is an array, as the function gives it.
Both come from the one source in the program's order, as without a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnish import rng
from burnish.autodiff import Variable
from burnish.backend.philox import mask_bound
from burnish.plan.cpu.buffers import Mask, Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import PLAIN
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Node

_STEPS = 4
"""The cost of a number, in operations."""


class Draw(NamedTuple):
    """make: gives a run's array, of the run's values. spot: what records read."""

    make: Callable[[list[Any]], Any]
    spot: Spot


@lower("keep_mask")
def keep_mask(b: Builder, node: Node) -> None:
    """A mask that programs draw by its key; in memory where another record reads it."""
    (_, probability, _), value = node.args, node.result
    need(isinstance(probability, int | float), "its probability is computed")
    mask = Mask(b.held(8), mask_bound(probability))
    label, count = b.label, value.size

    def written() -> None:
        b.label, before = label, b.label
        out = b.result(value)
        b.add(
            "keep_mask", b.shares(count * _STEPS), key=mask.key, out=out, count=count,
            bound=mask.bound,
        )  # fmt: skip
        b.label = before

    b.masks[value.place], b.deferred[value.place] = mask, written
    b.draws.append(Draw(_key, mask.key))


@lower("draw")
def draw(b: Builder, node: Node) -> None:
    (line,), (value,) = node.lines, node.results
    need(not node.reads, "what it draws depends on values")
    need(value.dtype in (np.float32, np.bool_, np.int64), f"it gives {value.dtype}")

    def make(values: list[Any]) -> Any:
        line.make(values)
        made = values[value.place]
        return made.data if isinstance(made, Variable) else made

    spot = b.held(value.size * value.dtype.itemsize)
    b.alias(value, PLAIN, spot)
    b.draws.append(Draw(make, spot))


def _key(values: list[Any]) -> Any:
    return np.array([rng.key()], np.uint64)
