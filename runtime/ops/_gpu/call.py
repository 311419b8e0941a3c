"""Shared by GPU kernels: the fallback to an operator's plain value."""

from __future__ import annotations

from burnish.backend import bfloat16
from burnish.backend.cuda.convolution import windows
from burnish.backend.cuda.norms import rows


def plain(op, *args, **options):
    """The plain value: of bfloat16 computed in float32, as no kernel did it."""
    if not bfloat16.is_among(args):
        return op.value(*bfloat16.widened(args), **options)
    return bfloat16.narrowed(op.value(*bfloat16.widened(args), **options))


def or_plain(part):
    """A gradient that a kernel found; else the plain rule has to."""
    return NotImplemented if part is None else part


def together(needed, *ways):
    """How to compute the gradients that are needed, or None where one is not known.

    ways: for the first arguments, a function without arguments each, which gives a
    function of g, y and all arguments, or None.
    """
    runs = []
    for place, need in enumerate(needed):
        if need:
            run = ways[place]() if place < len(ways) else None
            if run is None:
                return None
            runs.append((place, run))
    nothing = [None] * len(needed)

    def pulled(*arrays):
        parts = nothing.copy()
        for place, run in runs:
            if (part := run(*arrays)) is None:
                return None
            parts[place] = part
        return parts

    return pulled


def alike(*given):
    """Whether arrays are floats of one kind, and none is empty."""
    held = [a for a in given if a is not None]
    return rows.takes(*held) and windows.fits(*(a.shape for a in held))
