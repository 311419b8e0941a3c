"""Metrics that need every item's score at once: areas under curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish.learner.metric.base import Compared, Statistics


@dataclass(frozen=True)
class _Area(Compared):
    """Outputs (N,) or (N, 1): scores of the positive class, targets (N,) 0 or 1.

    With (N, 2) the scores are the second column; with more, targets are classes and
    the value is the mean of each class against the others.
    """

    unit = "%"
    collected = True

    def compare(self, output: Any, targets: Any) -> Statistics:
        if output.ndim == 1:
            output = output[:, None]
        fits = output.ndim == 2 and targets.reshape(-1).shape == output.shape[:1]
        what = "output (batch,) or (batch, classes) and targets (batch,)"
        self.expect(fits, what, output, targets)
        return {"scores": output, "targets": targets.reshape(-1)}

    def value(self, statistics: Statistics) -> float:
        scores, targets = statistics["scores"], statistics["targets"]
        if scores.shape[1] <= 2:
            return 100 * self.area(scores[:, -1], targets.astype(bool))
        each = [self.area(scores[:, c], targets == c) for c in range(scores.shape[1])]
        return 100 * float(np.nanmean(each)) if not np.isnan(each).all() else np.nan

    def area(self, scores: Any, positive: Any) -> float:
        """The area, 0 to 1, of scores (N,) and booleans (N,); nan of one kind alone."""
        raise TypeError(f"{type(self).__name__} does not say its area")


@dataclass(frozen=True)
class AUROC(_Area):
    """Area under the receiver operating characteristic: P(positive above negative).

    Worked out from ranks, ties at their mean (Mann and Whitney 1947).
    """

    def area(self, scores: Any, positive: Any) -> float:
        n, total = int(positive.sum()), len(positive)
        if n in (0, total):
            return float("nan")
        _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
        last = counts.cumsum()
        ranks = (last - (counts - 1) / 2)[inverse]
        return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (total - n)))


@dataclass(frozen=True)
class AUCPR(_Area):
    """Area under precision and recall, as average precision (scikit-learn's)."""

    def area(self, scores: Any, positive: Any) -> float:
        n = int(positive.sum())
        if not n:
            return float("nan")
        order = np.argsort(-scores, kind="stable")
        scores, found = scores[order], positive[order].cumsum()
        ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
        precision, recall = found[ends] / (ends + 1), found[ends] / n
        return float((np.diff(recall, prepend=0.0) * precision).sum())
