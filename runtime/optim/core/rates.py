"""Learning rates: one for all parameters, or one each for groups of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from burnish.backend.cuda.graphs.live import Live
from burnish.errors import InputError
from burnish.nn import Module, ParamGroup


class Rates(float):
    """A learning rate, and others for groups; where groups overlap the last one counts.

    It is a number, the rate of parameters in no group, so it may be used wherever a
    learning rate does.
    """

    groups: tuple[tuple[ParamGroup, float], ...]

    def __new__(
        cls, rate: float, groups: Iterable[tuple[ParamGroup, float]] = ()
    ) -> Self:
        self = super().__new__(cls, rate)
        self.groups = tuple(groups)
        return self

    def __repr__(self) -> str:
        return f"Rates({float(self)!r}, {list(self.groups)!r})"


def rates_of(
    rate: float | Live, module: Module, paths: Iterable[str]
) -> Mapping[str, Any]:
    """The rate of every path in `paths`; InputError unless they are 0 or more."""
    if type(rate) is Live:  # of a step that is captured
        rate.check = _number
        return dict.fromkeys(paths, rate)
    found = dict.fromkeys(paths, _number(rate))
    if isinstance(rate, Rates):
        for group, own in rate.groups:
            rate = _number(own)
            found |= {path: rate for path in group.paths(module) if path in found}
    return found


def _number(rate: Any) -> float:
    try:
        number = float(rate)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        hint = "; a schedule gives one with step()" if hasattr(rate, "step") else ""
        raise InputError(
            f"optimizer: expected a number of 0 or more as the learning rate, "
            f"got {rate!r}{hint}"
        )
    return number
