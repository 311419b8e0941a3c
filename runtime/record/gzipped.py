"""Any format in gzip, which has a CRC-32 of its own."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO, cast

from burnish._files.budget import Budget
from burnish.errors import BudgetError, RecordError
from burnish.record.elements import dtype_called
from burnish.record.format import Content, Format
from burnish.serialize.inflate import GZIP, inflated

_PIECE = 1 << 20
_FREE, _TIMES = 32 << 20, 6  # less than what a reader's budget has


class _Packed:
    """A file in gzip that no reader takes for a bomb.

    What would be packed more tightly than a file may be that needs `cost` bytes of
    memory for each of its own, such as very many zeros, is stored as it is instead.
    """

    def __init__(self, out: BinaryIO, cost: float):
        self.out = out
        self.cost = cost
        self.came = self.went = 0
        self.piece = bytearray()
        self.level = 6
        self.pack = self._stream()

    def write(self, data: Any) -> int:
        for at in range(0, len(data), _PIECE):
            self.piece += data[at : at + _PIECE]
            if len(self.piece) >= _PIECE:
                self._flush()
        return len(data)

    def close(self) -> None:
        self._flush()
        self._put(self.pack.flush())

    def _flush(self) -> None:
        self.came += len(self.piece)
        tight = self.came * self.cost > _FREE + _TIMES * self.went
        if tight is not (self.level == 0):
            self._put(self.pack.flush())
            self.level = 0 if tight else 6
            self.pack = self._stream()
        self._put(self.pack.compress(self.piece))
        self.piece.clear()

    def _stream(self) -> Any:
        return zlib.compressobj(self.level, zlib.DEFLATED, GZIP)

    def _put(self, data: bytes) -> None:
        self.out.write(data)
        self.went += len(data)


def gzipped(inner: Format) -> Format:
    """The format that is `inner` in gzip; the same record gives the same bytes."""

    def write(out: BinaryIO, content: Content) -> None:
        wide = content.page.get("dtypes", {})
        held = sum(array.nbytes for array in content.arrays.values())
        wider = sum(
            content.arrays[name].size * dtype_called(dtype).itemsize
            for name, dtype in wide.items()
        )
        file = _Packed(out, inner.cost + wider / max(held, 1))
        inner.write(cast(Any, file), content)
        file.close()

    def read(data: memoryview, budget: Budget) -> Content:
        try:
            whole = inflated(data, budget, GZIP)
        except BudgetError:
            raise
        except ValueError as error:
            raise RecordError(f"expected a whole gzip stream: {error}") from None
        head = bytes(whole[:64])
        if not inner.begins(head):
            raise RecordError(f"expected {inner.kind} in gzip, got {head[:8]!r}")
        return inner.read(whole, budget)

    return Format(
        f"{inner.kind} in gzip",
        f"{inner.suffix}.gz",
        lambda head: head.startswith(b"\x1f\x8b"),
        write,
        read,
    )
