"""Names that are known, and the error of data that does not fit them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.serialize.inert import Name


class Refused(Exception):
    """Data that does not fit; the machine says where."""


class Constructor(Name):
    """A name that is known: `make(machine, *args)` gives the value."""

    __slots__ = ("make",)

    def __init__(self, name: str, make: Callable[..., Any]):
        super().__init__(name)
        self.make = make
