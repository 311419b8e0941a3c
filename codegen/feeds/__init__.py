"""Inputs of a model file, drawn so that it runs: what `verify` and self tests feed.

In: a graph, and arrays and sizes that a user gives. Out: an array for each input, with
sizes that go together, ids within their tables, and prompts that searches take.
Invariant: the same seed draws the same arrays; what a user gives is never changed.
"""

from burnish.codegen.feeds.inputs import (
    SIZES,
    described,
    dimensions,
    load,
    make,
    names_of,
    refuse_unknown,
    tries,
)

__all__ = [
    "SIZES",
    "described",
    "dimensions",
    "load",
    "make",
    "names_of",
    "refuse_unknown",
    "tries",
]
