"""Compare two tensors at several tolerances."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from burnish.errors import InputError

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""The tolerances that `check_closeness` tries, absolute and relative at once."""

_VERDICTS = (  # the least share, a word, an ANSI colour, a sentence
    (1.0, "PASS", 32, "all elements are within tolerance"),
    (0.9, "WARN", 33, "most elements are within tolerance"),
    (0.0, "FAIL", 31, "significant differences"),
)


def check_closeness(output: Any, expected: Any) -> dict[float, float]:
    """Print for each tolerance how many elements agree; return the shares.

    An element agrees at `epsilon` where |output - expected| <= epsilon +
    epsilon * |expected|; equal infinities and two NaNs agree. Words are coloured where
    standard output is a terminal and NO_COLOR is not set: green all, yellow 90 % and
    more, red fewer.

    Raises InputError where the shapes differ.
    """
    ours, theirs = np.asarray(output), np.asarray(expected)
    if ours.shape != theirs.shape:
        raise InputError(
            f"check_closeness: expected shapes to be equal, got {ours.shape} and "
            f"{theirs.shape}"
        )
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(_head(ours, theirs))
    shares = {}
    for epsilon in LEVELS:
        close = np.isclose(ours, theirs, epsilon, epsilon, equal_nan=True)
        count, share = int(close.sum()), float(close.mean()) if close.size else 1.0
        shares[epsilon] = share
        print(_line(epsilon, count, close.size, share, coloured))
    return shares


def _head(ours: np.ndarray, theirs: np.ndarray) -> str:
    kinds = (
        f"{ours.dtype}"
        if ours.dtype == theirs.dtype
        else (f"{ours.dtype} and {theirs.dtype}")
    )
    return f"closeness of {ours.size} elements, shape {ours.shape}, {kinds}"


def _line(epsilon: float, count: int, size: int, share: float, coloured: bool) -> str:
    word, colour, sentence = next(rest for least, *rest in _VERDICTS if share >= least)
    word = f"[{word}]"
    if coloured:
        word = f"\x1b[{colour}m{word}\x1b[0m"
    counted = f"{count:>{len(str(size))}} / {size}"
    return f"  {epsilon:.0e}  {counted}  {share:7.2%}  {word} {sentence}"
