"""Metrics of sequences of tokens.

Outputs are tokens (batch, time) or scores of them (batch, time, classes), targets
tokens (batch, time), whole numbers; `pad` fills rows up. An output after an `end`
token is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish.learner.metric.base import Compared, Statistics, percent, ratio


@dataclass(frozen=True)
class Perplexity(Compared):
    """e to the mean cross entropy of tokens; outputs (..., classes) are logits.

    pad: a target that is not counted.
    """

    pad: int | None = None

    higher_is_better = False

    def compare(self, output: Any, targets: Any) -> Statistics:
        fits = output.shape[:-1] == targets.shape
        self.expect(fits, "output (..., classes) and targets (...)", output, targets)
        counted = np.ones(targets.shape, bool)
        if self.pad is not None:
            counted = targets != self.pad
        logits = output[counted].astype(np.float64)
        logits -= logits.max(-1, keepdims=True, initial=-np.inf)
        chosen = np.take_along_axis(logits, targets[counted][:, None], -1)[:, 0]
        loss = np.log(np.exp(logits).sum(-1)) - chosen
        return {"sum": float(loss.sum()), "count": int(counted.sum())}

    def value(self, statistics: Statistics) -> float:
        return float(np.exp(ratio(statistics["sum"], statistics["count"])))


@dataclass(frozen=True)
class _Sequences(Compared):
    """Base of what compares rows of tokens.

    pad: the token that fills rows up; end: what ends an output and a target.
    """

    pad: int | None = None
    end: int | None = None

    unit = "%"

    def compare(self, output: Any, targets: Any) -> Statistics:
        if output.ndim == 3:
            output = output.argmax(-1)
        fits = output.ndim == targets.ndim == 2 and len(output) == len(targets)
        what = "output (batch, time) or (batch, time, classes), targets (batch, time)"
        self.expect(fits, what, output, targets)
        return self.sequences(self._rows(output), self._rows(targets))

    def _rows(self, tokens: Any) -> list[Any]:
        rows = []
        for row in tokens:
            if self.end is not None and (ends := np.flatnonzero(row == self.end)).size:
                row = row[: ends[0]]
            rows.append(row if self.pad is None else row[row != self.pad])
        return rows

    def sequences(self, found: list[Any], wanted: list[Any]) -> Statistics:
        """The statistics of rows of tokens, of their own lengths."""
        raise TypeError(f"{type(self).__name__} does not say how it compares")


@dataclass(frozen=True)
class CER(_Sequences):
    """Character error rate: edits from output to target over the target's length.

    Tokens are characters (Levenshtein 1966).
    """

    higher_is_better = False

    def sequences(self, found: list[Any], wanted: list[Any]) -> Statistics:
        edits = sum(edit_distance(a, b) for a, b in zip(found, wanted, strict=True))
        return {"edits": edits, "count": sum(map(len, wanted))}

    def value(self, statistics: Statistics) -> float:
        return percent(statistics, "edits", "count")


@dataclass(frozen=True)
class WER(CER):
    """Word error rate: as CER, of tokens that are words.

    space: a token between words, where tokens are characters.
    """

    space: int | None = None

    def sequences(self, found: list[Any], wanted: list[Any]) -> Statistics:
        if self.space is None:
            return super().sequences(found, wanted)
        words: dict[bytes, int] = {}
        return super().sequences(
            [self._words(row, words) for row in found],
            [self._words(row, words) for row in wanted],
        )

    def _words(self, row: Any, words: dict[bytes, int]) -> Any:
        """A row with one number for each word."""
        parts = np.split(row, np.flatnonzero(row == self.space))
        spelled = [part[part != self.space].tobytes() for part in parts]
        return np.array(
            [words.setdefault(word, len(words)) for word in spelled if word], int
        )


@dataclass(frozen=True)
class BLEU(_Sequences):
    """Shared runs of 1 to `n` tokens over a whole corpus (Papineni et al. 2002).

    smooth: add one to the counts of runs longer than 1 (Lin and Och 2004).
    """

    n: int = 4
    smooth: bool = False

    def sequences(self, found: list[Any], wanted: list[Any]) -> Statistics:
        matches, totals = np.zeros(self.n, int), np.zeros(self.n, int)
        for a, b in zip(found, wanted, strict=True):
            for i in range(self.n):
                runs, counts = _runs(a, i + 1)
                there, limits = _runs(b, i + 1)
                totals[i] += counts.sum()
                limit = dict(zip(there, limits, strict=True))
                matches[i] += sum(
                    min(count, limit.get(run, 0))
                    for run, count in zip(runs, counts, strict=True)
                )
        return {
            "matches": matches,
            "totals": totals,
            "found": sum(map(len, found)),
            "wanted": sum(map(len, wanted)),
        }

    def value(self, statistics: Statistics) -> float:
        matches = np.asarray(statistics["matches"], float)
        totals = np.asarray(statistics["totals"], float)
        if self.smooth:
            matches[1:] += 1
            totals[1:] += 1
        if not statistics["found"] or not matches.all():
            return 0.0
        brevity = min(0.0, 1 - statistics["wanted"] / statistics["found"])
        return 100 * float(np.exp(brevity + np.log(matches / totals).mean()))


@dataclass(frozen=True)
class ROUGEL(_Sequences):
    """F1 of the longest common subsequence, mean of all rows (Lin 2004)."""

    @property
    def name(self) -> str:
        return "ROUGE-L"

    def sequences(self, found: list[Any], wanted: list[Any]) -> Statistics:
        score = 0.0
        for a, b in zip(found, wanted, strict=True):
            common = common_length(a, b)
            score += 2 * common / (len(a) + len(b)) if common else 0.0
        return {"sum": score, "count": len(found)}

    def value(self, statistics: Statistics) -> float:
        return percent(statistics, "sum", "count")


def edit_distance(a: Any, b: Any) -> int:
    """Insertions, deletions and replacements from `a` to `b`, a row at a time."""
    places = np.arange(len(b) + 1)
    row = places
    for i, token in enumerate(a):
        new = np.append(i + 1, np.minimum(row[1:] + 1, row[:-1] + (b != token)))
        # an insertion costs one for each place passed
        row = np.minimum.accumulate(new - places) + places
    return int(row[-1])


def common_length(a: Any, b: Any) -> int:
    """The length of the longest common subsequence, a row at a time."""
    row = np.zeros(len(b) + 1, int)
    for token in a:
        row = np.maximum.accumulate(
            np.append(0, np.maximum(row[1:], row[:-1] + (b == token)))
        )
    return int(row[-1])


def _runs(row: Any, n: int) -> tuple[list[tuple[int, ...]], Any]:
    """The different runs of n tokens in a row, and how often each occurs."""
    if len(row) < n:
        return [], np.zeros(0, int)
    windows = np.lib.stride_tricks.sliding_window_view(row, n)
    runs, counts = np.unique(windows, axis=0, return_counts=True)
    return [tuple(run) for run in runs.tolist()], counts
