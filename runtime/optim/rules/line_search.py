"""A step length that satisfies the strong Wolfe conditions.

Bracketing and zooming as in Nocedal and Wright, Numerical Optimization, algorithms 3.5
and 3.6; trial lengths come from cubic interpolation, its safeguards are minFunc's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burnish.backend import Array

_DECREASE = 1e-4
_CURVATURE = 0.9


@dataclass(frozen=True, slots=True)
class Point:
    """Value and slope of the function at one length along the direction."""

    length: float
    value: float
    gradient: Array
    slope: float


Function = Callable[[float], Point]


def strong_wolfe(
    at: Function, start: Point, length: float, tolerance: float, most: int
) -> Point:
    """The best point found.

    start: the point of length 0; length: the first to try; tolerance: a bracket that
    is shorter ends the search; most: so many calls at most.
    """
    low, high, calls = _bracket(at, start, length, most)
    if high is None:
        return low
    ends, stuck = sorted((low, high), key=lambda point: point.value), False
    while calls <= most:
        low, high = ends
        if abs(low.length - high.length) < tolerance:
            break
        trial, stuck = _safe(_cubic(*_ordered(low, high)), low, high, stuck)
        point = at(trial)
        calls += 1
        if _too_high(point, start) or point.value >= low.value:
            ends = sorted((low, point), key=lambda p: p.value)
            continue
        if abs(point.slope) <= -_CURVATURE * start.slope:
            return point
        turned = point.slope * (high.length - low.length) >= 0
        ends = [point, low if turned else high]
    return ends[0]


def _bracket(
    at: Function, start: Point, length: float, most: int
) -> tuple[Point, Point | None, int]:
    """Two points with a good one between them; one alone is good itself."""
    before, point = start, at(length)
    for tried in range(most):
        rose = tried > 1 and point.value >= before.value
        if _too_high(point, start) or rose:
            return before, point, tried + 1
        if abs(point.slope) <= -_CURVATURE * start.slope:
            return point, None, tried + 1
        if point.slope >= 0:
            return before, point, tried + 1
        least = point.length + 0.01 * (point.length - before.length)
        trial = _cubic(before, point, (least, 10 * point.length))
        before, point = point, at(trial)
    return start, point, most + 1


def _too_high(point: Point, start: Point) -> bool:
    return point.value > start.value + _DECREASE * point.length * start.slope


def _ordered(a: Point, b: Point) -> tuple[Point, Point]:
    return (a, b) if a.length <= b.length else (b, a)


def _cubic(a: Point, b: Point, bounds: Any = None) -> float:
    """The minimum of the cubic through both points and slopes, within the bounds."""
    low, high = bounds or (a.length, b.length)
    span = b.length - a.length
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    divisor = b.slope - a.slope + 2 * d2
    if divisor == 0:
        return (low + high) / 2
    return min(max(b.length - span * (b.slope + d2 - d1) / divisor, low), high)


def _safe(length: float, low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
    """A length that is not again and again next to an end of the bracket."""
    left, right = sorted((low.length, high.length))
    margin = 0.1 * (right - left)
    if min(right - length, length - left) >= margin:
        return length, False
    if not stuck and left < length < right:
        return length, True
    nearer = abs(length - right) < abs(length - left)
    return (right - margin if nearer else left + margin), False
