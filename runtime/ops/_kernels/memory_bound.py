"""Memory-bound operators: those that move more than they compute.

Balanced checkpointing computes their results again. Whole families are: elementwise
operators, those that change shapes, normalizations, tables. Reductions are not among
them, their results are small and worth keeping.
"""

from __future__ import annotations

from burnish.operator import memory_bound, registry

_FAMILIES = (
    "_shapes",
    "activation",
    "arrays.padding",
    "arrays.shape",
    "elementwise",
    "norm",
    "sequences.embedding",
)


def mark() -> None:
    """Mark every operator of those families."""
    for operator in registry.values():
        parent, _, module = operator.__module__.removeprefix("burnish.").partition(".")
        if parent == "ops" and f"{module}.".startswith(_PREFIXES):
            memory_bound(operator)


_PREFIXES = tuple(f"{family}." for family in _FAMILIES)
