"""Home: the fixed GPU storage of a parameter or buffer that CUDA graphs update."""

from __future__ import annotations

from typing import Any

from burnish.backend.cuda.graphs import graphs
from burnish.nn.core.param import Stored


class Home:
    """An array that graphs read and write, and whose values a parameter has.

    Arrays that a parameter has given away never change. So it is lent a copy, made when
    somebody asks for its values, and until then the next run may write here.
    """

    def __init__(self, item: Stored, room: graphs.Room):
        self.item, self._room = item, room
        self.array = graphs.copy(item.data)
        self._taken: Any = item.held
        self._values = self._copied

    def take_up(self) -> None:
        """Have the values that were assigned since the last run."""
        item = self.item
        if item.is_lent(self._values):
            return
        held = item.held
        if held is not self._taken:
            graphs.copied_into(self.array, item.data)
            self._taken = held

    def lend(self) -> None:
        """Say that a run has changed the values."""
        if not self.item.is_lent(self._values):
            self._taken = None
            self.item.lend(self._values)

    def _copied(self, *kind: Any) -> Any:
        with self._room.running():
            self._taken = graphs.copy(self.array)
        return self._taken
