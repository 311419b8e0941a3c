"""Metrics of classifiers, in percent.

N items, C classes. Definitions are scikit-learn's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from burnish.errors import InputError
from burnish.learner.metric.base import Compared, Statistics, percent


@dataclass(frozen=True)
class TopKAccuracy(Compared):
    """The share of items whose target is among the k largest outputs.

    Outputs (..., C), targets (...). pad: a target that is not counted.
    """

    k: int = 5
    pad: int | None = None

    unit = "%"

    @property
    def name(self) -> str:
        return f"Top-{self.k} Accuracy"

    def compare(self, output: Any, targets: Any) -> Statistics:
        fits = output.ndim == targets.ndim + 1 and output.shape[:-1] == targets.shape
        self.expect(fits, "output (..., classes) and targets (...)", output, targets)
        right = (largest(output, self.k) == targets[..., None]).any(-1)
        counted = np.ones_like(right) if self.pad is None else targets != self.pad
        return {"right": int((right & counted).sum()), "count": int(counted.sum())}

    def value(self, statistics: Statistics) -> float:
        return percent(statistics, "right", "count")


@dataclass(frozen=True)
class Accuracy(TopKAccuracy):
    """The share of items whose largest output is the target's.

    Outputs (..., C), targets (...). pad: a target that is not counted.
    """

    k: int = 1

    @property
    def name(self) -> str:
        return "Accuracy"


Kind = Literal["multiclass", "binary", "multilabel"]


@dataclass(frozen=True)
class ConfusionStats(Compared):
    """Base of the metrics of true and false positives and negatives by class.

    kind: "multiclass", outputs (N, C) and targets (N,), the `top_k` largest outputs
    are predictions; "multilabel", both (N, C); "binary", both (N,) or (N, 1);
    in the latter two an output above `threshold` is a prediction.
    average: "micro" counts all classes together, "macro" is the mean of the classes
    that occur.
    """

    kind: Kind = "multiclass"
    top_k: int = 1
    threshold: float = 0.5
    average: Literal["micro", "macro"] = "micro"

    unit = "%"

    def __post_init__(self) -> None:
        if self.kind not in ("multiclass", "binary", "multilabel"):
            raise InputError(
                f"{type(self).__name__} kind: expected 'multiclass', 'binary' or "
                f"'multilabel', got {self.kind!r}"
            )
        if self.average not in ("micro", "macro"):
            raise InputError(
                f"{type(self).__name__} average: expected 'micro' or 'macro', "
                f"got {self.average!r}"
            )

    @property
    def name(self) -> str:
        return self.title + (" (macro)" if self.average == "macro" else "")

    @property
    def title(self) -> str:
        """The name without what the classes become."""
        return type(self).__name__

    def compare(self, output: Any, targets: Any) -> Statistics:
        predicted, wanted = self._booleans(output, targets)
        return {
            "right": (predicted & wanted).sum(0),
            "predicted": predicted.sum(0),
            "wanted": wanted.sum(0),
            "count": len(wanted),
        }

    def _booleans(self, output: Any, targets: Any) -> tuple[Any, Any]:
        """Predicted and true classes, each (N, C) booleans."""
        if self.kind == "multiclass":
            fits = output.ndim == 2 and targets.shape == output.shape[:1]
            what = "output (batch, classes) and targets (batch,)"
            self.expect(fits, what, output, targets)
            classes = np.arange(output.shape[1])
            chosen = largest(output, self.top_k)
            return (chosen[..., None] == classes).any(1), targets[:, None] == classes
        if self.kind == "binary":
            output, targets = output.reshape(-1, 1), targets.reshape(-1, 1)
        fits = output.ndim == 2 and output.shape == targets.shape
        self.expect(fits, "output and targets of one shape", output, targets)
        return output > self.threshold, targets.astype(bool)

    def value(self, statistics: Statistics) -> float:
        right, predicted, wanted = (
            np.asarray(statistics[key], float)
            for key in ("right", "predicted", "wanted")
        )
        if self.average == "micro":
            right, predicted, wanted = right.sum(), predicted.sum(), wanted.sum()
        occurs = (predicted > 0) | (wanted > 0)
        score = self.score(right, predicted, wanted)
        return 100 * float(score[occurs].mean()) if occurs.any() else float("nan")

    def score(self, right: Any, predicted: Any, wanted: Any) -> Any:
        """The value, 0 to 1, of true positives and of positives of both kinds."""
        raise TypeError(f"{type(self).__name__} does not say its score")


@dataclass(frozen=True)
class Precision(ConfusionStats):
    """True positives among what was predicted; see ConfusionStats."""

    def score(self, right: Any, predicted: Any, wanted: Any) -> Any:
        return right / np.maximum(predicted, 1)


@dataclass(frozen=True)
class Recall(ConfusionStats):
    """True positives among what was to be found; see ConfusionStats."""

    def score(self, right: Any, predicted: Any, wanted: Any) -> Any:
        return right / np.maximum(wanted, 1)


@dataclass(frozen=True)
class FBetaScore(ConfusionStats):
    """Harmonic mean of precision and `beta` times weighted recall."""

    beta: float = 1.0

    @property
    def title(self) -> str:
        return f"F{self.beta:g}-Score"

    def score(self, right: Any, predicted: Any, wanted: Any) -> Any:
        weight = self.beta**2
        whole = predicted + weight * wanted
        return (1 + weight) * right / np.where(whole > 0, whole, 1)


@dataclass(frozen=True)
class HammingScore(Compared):
    """The share of labels that are right; outputs and targets of one shape.

    An output above `threshold` is a prediction.
    """

    threshold: float = 0.5

    unit = "%"

    def compare(self, output: Any, targets: Any) -> Statistics:
        fits = output.shape == targets.shape
        self.expect(fits, "output and targets of one shape", output, targets)
        right = (output > self.threshold) == targets.astype(bool)
        return {"right": int(right.sum()), "count": right.size}

    def value(self, statistics: Statistics) -> float:
        return percent(statistics, "right", "count")


def largest(output: Any, k: int) -> Any:
    """The classes of the k largest outputs, (..., C) -> (..., k)."""
    if k == 1:
        return output.argmax(-1)[..., None]
    if k >= output.shape[-1]:
        return np.broadcast_to(np.arange(output.shape[-1]), output.shape)
    return np.argpartition(output, -k, -1)[..., -k:]
