"""Repeats in a sequence: in a row (tandem repeats), or apart from each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import eq

_PERIODS = 48
"""How many periods are tried, the most frequent distances first."""
_RUNS = 24
"""How many runs are compared, those that save most first."""


@dataclass(frozen=True)
class Run:
    """`count` times the word of `period` places from `start` on, `rest` places more."""

    start: int
    period: int
    count: int
    rest: int


def best_run(
    sequence: Sequence[int], weights: Sequence[int], little: Collection[int] = ()
) -> Run | None:
    """The run whose word saves most, by the weight of the places that it saves.

    A word saves at all its places, not in one run alone: what a longer word repeats
    goes first. A word is no single symbol of `little`, once or several times: that
    would take it from longer words. Linear in the sequence: each distance between
    equals is a candidate.
    """
    last: dict[int, int] = {}
    apart: Counter[int] = Counter()
    for place, word in enumerate(sequence):
        if word in last:
            apart[place - last[word]] += 1
        last[word] = place
    total = [0, *accumulate(weights)]

    def saved_here(run: Run) -> int:
        return total[run.start + run.count * run.period] - total[run.start + run.period]

    def saved(run: Run) -> int:
        end = run.start + run.period
        count = len(places_of(sequence, sequence[run.start : end]))
        return (count - 1) * (total[end] - total[run.start])

    def is_little(run: Run) -> bool:
        word = set(sequence[run.start : run.start + run.period])
        return len(word) == 1 and not word.isdisjoint(little)

    periods = sorted(period for period, _ in apart.most_common(_PERIODS))
    runs = [run for period in periods for run in _runs(sequence, period)]
    runs = [r for r in runs if not is_little(r)]
    runs = sorted((r for r in runs if saved_here(r) > 0), key=saved_here, reverse=True)
    return max(runs[:_RUNS], key=saved, default=None)


def _runs(sequence: Sequence[int], period: int) -> list[Run]:
    """Where the sequence equals itself shifted by `period`, for at least one period."""
    found = []
    start = 0
    for is_same, places in groupby(map(eq, sequence, sequence[period:])):
        length = sum(1 for _ in places)
        if is_same and length >= period:
            count, rest = divmod(length + period, period)
            found.append(Run(start, period, count, rest))
        start += length
    return found


def places_of(sequence: Sequence[int], word: Sequence[int]) -> list[int]:
    """The positions of the word, without overlap."""
    found: list[int] = []
    if not word:
        return found
    starts = [i for i, first in enumerate(sequence) if first == word[0]]
    behind = -1
    for start in starts:
        if start > behind and list(sequence[start : start + len(word)]) == list(word):
            found.append(start)
            behind = start + len(word) - 1
    return found


def recurring(sequence: Sequence[int], longest: int) -> list[tuple[int, list[int]]]:
    """Words of two places or more that recur without being a run.

    The length of each and its positions, without overlap. Linear in the sequence.
    """
    found: list[tuple[int, list[int]]] = []
    for length in range(2, longest + 1):
        starts: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for start in range(len(sequence) - length + 1):
            places = starts[tuple(sequence[start : start + length])]
            if not places or start >= places[-1] + length:
                places.append(start)
        found += [(length, places) for places in starts.values() if len(places) > 1]
    return found
