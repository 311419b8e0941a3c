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
from burnish.plan.cpu.builder import Builder, Spot
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
    _, probability, _ = node.args
    need(isinstance(probability, int | float), "its probability is computed")
    count = node.result.size
    key, out = b.held(8), b.result(node.result)
    b.add(
        "keep_mask", b.shares(count * _STEPS), key=key, out=out, count=count,
        probability=probability,
    )  # fmt: skip
    b.draws.append(Draw(_key, key))


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
