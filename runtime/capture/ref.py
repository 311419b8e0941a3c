"""Ref: where a program keeps a value while it runs."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """The place of a value among those of a run, and what it was in the capture."""

    place: int
    shape: tuple[int, ...]
    dtype: Any
