"""How much memory a file may ask for before its tensors are read."""

from __future__ import annotations

from burnish.errors import RecordError

_FLOOR = 1 << 20
_TIMES = 8


class Budget:
    """Counts what is made out of a file; a file that asks for too much is refused.

    A few bytes of a pickle can stand for any number of objects, so the total is held to
    eight times the file's size (and at least a mebibyte).
    """

    __slots__ = ("left", "size", "where")

    def __init__(self, size: int, where: str):
        self.size = size
        self.where = where
        self.left = self.limit

    @property
    def limit(self) -> int:
        """The bytes that may be made in all, and that one tensor may hold."""
        return _FLOOR + _TIMES * self.size

    def take(self, amount: int) -> None:
        """Count `amount` bytes. Raises RecordError when there are no more left."""
        self.left -= amount
        if self.left < 0:
            raise RecordError(
                f"{self.where}: expected objects that take at most {_TIMES} times the "
                f"file's {self.size} bytes, got more; is this a weights file?"
            )
