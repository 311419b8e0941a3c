"""An optimizer's state as a record: named arrays, saved and restored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from burnish import serialize
from burnish._engine.arguments import check_fields
from burnish.backend import Array, on_host


class Remembered:
    """Records of a class that says its state by name and takes it back.

    A dataclass, whose fields have to be what their annotations say.
    """

    def __post_init__(self) -> None:
        check_fields(self)

    def _named(self) -> dict[str, Array]:
        """Every array of the state by name; nothing is copied."""
        raise TypeError(f"{type(self).__name__} does not say what it remembers")

    def _recall(self, state: Mapping[str, Array]) -> None:
        """Continue from these arrays, which become this object's own."""
        raise TypeError(f"{type(self).__name__} cannot go on from a record")

    def _unchanged(self) -> AbstractContextManager[Any]:
        """A context within which no other thread changes the state."""
        return nullcontext()

    def state_dict(self) -> dict[str, Array]:
        """A copy of the state: "fc1.weight.velocity" -> array."""
        with self._unchanged():
            return {name: array.copy() for name, array in self._named().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Continue from a state of the same optimizer, saved on any device.

        Raises RecordError for names that no such state has.
        """
        arrays = {name: np.array(on_host(a)) for name, a in state.items()}
        with self._unchanged():
            self._recall(arrays)
        return self

    def save_file(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a safetensors file, atomically."""
        with self._unchanged():
            serialize.save_file(self._named(), path)

    def load_file(self, path: str | os.PathLike[str]) -> Self:
        """Continue from a file that `save_file` wrote."""
        return self.load_state_dict(serialize.load_file(path))
