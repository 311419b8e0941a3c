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


def alike(*given):
    """Whether arrays are floats of one kind, and none is empty."""
    held = [a for a in given if a is not None]
    return rows.takes(*held) and windows.fits(*(a.shape for a in held))
