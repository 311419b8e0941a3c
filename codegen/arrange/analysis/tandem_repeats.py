"""Tandem repeats: subsequences that follow themselves several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_PERIODS = 48
"""How many periods are tried, the most frequent distances first."""


@dataclass(frozen=True)
class Run:
    """`count` times the word of `period` places from `start` on, `rest` places more."""

    start: int
    period: int
    count: int
    rest: int


def best_run(sequence: Sequence[int], weights: Sequence[int]) -> Run | None:
    """The run whose loop saves most, by the weight of the places that it saves.

    Linear in the sequence: each distance between equal neighbours is a candidate.
    """
    last: dict[int, int] = {}
    apart: Counter[int] = Counter()
    for place, word in enumerate(sequence):
        if word in last:
            apart[place - last[word]] += 1
        last[word] = place
    total = [0]
    for weight in weights:
        total.append(total[-1] + weight)
    best, most = None, 0
    for period, _ in sorted(apart.most_common(_PERIODS)):
        for run in _runs(sequence, period):
            end = run.start + run.count * period
            saved = total[end] - total[run.start + period]
            if saved > most:
                best, most = run, saved
    return best


def _runs(sequence: Sequence[int], period: int) -> list[Run]:
    """Where the sequence equals itself `period` places on, for at least that long."""
    found = []
    length = 0
    for place in range(len(sequence) - period + 1):
        same = place + period < len(sequence) and (
            sequence[place] == sequence[place + period]
        )
        if same:
            length += 1
            continue
        if length >= period:
            start = place - length
            count, rest = divmod(length + period, period)
            found.append(Run(start, period, count, rest))
        length = 0
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


def stretches(places: Sequence[int], length: int) -> list[list[int]]:
    """Positions of a word of that length, grouped where the words are adjacent."""
    if not places:
        return []
    found = [[places[0]]]
    for before, place in pairwise(places):
        if place == before + length:
            found[-1].append(place)
        else:
            found.append([place])
    return found
