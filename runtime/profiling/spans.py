"""Spans: calls with their begin, end, parent and memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal

Kind = Literal["module", "operator", "gradient", "optimizer", "plan"]


@dataclasses.dataclass(slots=True)
class Span:
    """One call.

    name: of an operator, or the path of a module ("layers.0.conv1", "" for the one
    that was called). detail: the module's class, or the shapes of the arguments.
    start, end: nanoseconds since the profile began. parent: the place of the span that
    it is within, -1 for none. allocated: bytes of the arrays that it gave, those of
    spans within it too. live: the most bytes of results alive during it.
    """

    name: str
    kind: Kind
    detail: str
    start: int
    parent: int
    end: int = 0
    allocated: int = 0
    live: int = 0

    @property
    def duration(self) -> int:
        """Nanoseconds."""
        return self.end - self.start


def own_times(spans: Iterable[Span]) -> list[int]:
    """Nanoseconds of each span that none within it took."""
    spans = list(spans)
    own = [span.duration for span in spans]
    for span in spans:
        if span.parent >= 0:
            own[span.parent] -= span.duration
    return own
