"""Which of the library's operators move more than they compute.

Balanced checkpointing computes their results again. Whole families are: elementwise
operators, those that change shapes, normalizations, tables. Reductions are not among
them, their results are small and worth keeping.
"""

from __future__ import annotations

from burnish.operator import memory_bound, registry

_FAMILIES = (
    "_shapes",
    "activation",
    "arithmetic",
    "bits",
    "clip",
    "compare",
    "elementary",
    "embedding",
    "norm",
    "padding",
    "shape",
)


def mark() -> None:
    """Mark every operator of those families."""
    homes = {f"burnish.ops.{family}" for family in _FAMILIES}
    for operator in registry.values():
        if operator.__module__ in homes:
            memory_bound(operator)
