"""The table of lowering functions by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.plan.graph import Node

LOWERED: dict[str, Callable[..., None]] = {}
"""By an operator's name: a function of the builder and the node."""


class Declined(Exception):
    """A node that kernels do not compute: it runs eagerly. Its words say why."""


def lower(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare how nodes of these names become records."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        assert LOWERED.keys().isdisjoint(names), f"{names} are lowered elsewhere"
        LOWERED.update(dict.fromkeys(names, function))
        return function

    return register


def need(condition: Any, why: str) -> None:
    """Raises Declined with the reason where a condition does not hold."""
    if not condition:
        raise Declined(why)


def check(node: Node, *values: Any) -> None:
    """Raises Declined where a value is not float32, or a result has no elements."""
    for value in values:
        need(
            value is None or value.dtype == np.float32, "it is not in single precision"
        )
    need(all(value.size for value in node.results), "it has no elements")
