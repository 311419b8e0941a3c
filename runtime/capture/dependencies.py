"""Dependencies: state outside of its arguments that a recorded function reads."""

from __future__ import annotations

import weakref
from typing import Any

from burnish.nn.core.param import Stored


class Dependencies:
    """Base of tapes; every table is by the object's `id`.

    stored: parameters and buffers that are read or changed. formulas: parameters that
    are made of others, and whether they were merged. seen: tensors that are constant in
    a recording, and their arrays.
    """

    def __init__(self) -> None:
        self.stored: dict[int, Stored] = {}
        self.formulas: dict[int, tuple[Any, bool]] = {}
        self.seen: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def note_formula(self, stored: Any) -> None:
        """A parameter that is made of others is used: merged, or by its formula."""
        self.formulas[id(stored)] = (stored, stored.is_merged)

    def note_array(self, tensor: Any) -> Any:
        """The array of a tensor that is to stay as it is."""
        array = tensor.data
        self.seen[id(tensor)] = (weakref.ref(tensor), array)
        return array
