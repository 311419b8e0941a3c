"""Random ensembles of decision trees."""

from __future__ import annotations

import numpy as np


def forest(seed, trees=7, depth=6, width=5, dtype=np.float32, modes=6):
    """Arrays of full trees, of nodes that ask at random, with two votes a leaf.

    modes: how many ways of asking there are.
    """
    rng = np.random.default_rng(seed)
    inner = 2**depth - 1
    child = 2 * np.arange(inner) + np.array([[1], [2]])
    tree = np.arange(trees)[:, None, None]
    sides = np.where(
        child < inner, child + tree * inner, ~(child - inner + tree * (inner + 1))
    )
    leaves = trees * (inner + 1)
    return {
        "roots": np.arange(trees) * inner,
        "features": rng.integers(0, width, trees * inner),
        "thresholds": rng.integers(-1, 2, trees * inner).astype(dtype),
        "yes": sides[:, 0].ravel(),
        "no": sides[:, 1].ravel(),
        "targets": rng.integers(0, 4, (leaves, 2)),
        "weights": rng.standard_normal((leaves, 2)).astype(dtype),
        "modes": rng.integers(0, modes, trees * inner).astype(np.uint8),
        "missing": rng.random(trees * inner) < 0.5,
    }
