"""Packed: a quantized array with its scales, zero points and scheme."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from burnish import ops
from burnish.backend import Array, Device, namespace

if TYPE_CHECKING:
    from burnish.lowbit.scheme import QuantScheme


@dataclass(frozen=True, eq=False)
class Packed:
    """A quantized array; it never changes.

    codes: as `scheme.store` says. scales, zero_points: one number a block (zero_points
    None for symmetric ones). shape, dtype: of the array that it represents.
    """

    scheme: QuantScheme
    codes: Array
    scales: Array
    zero_points: Array | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and zero points."""
        return sum(part.nbytes for part in self.parts().values())

    def unpack(self) -> Array:
        """The array, computed anew at every call."""
        return ops.dequantize_blocks(
            self.codes,
            self.scales,
            self.zero_points,
            value=self.scheme.value,
            blocks=self.scheme.level.blocks(self.shape),
            store=self.scheme.store,
            shape=self.shape,
            dtype=self.dtype,
        )

    def take(self, rows: Array) -> Array:
        """Rows of the array, (..., n) for rows (...); no others are computed.

        rows: places along the first axis. Raises IndexError beyond them.
        """
        xp = namespace(self.codes)
        counts = self.scheme.level.counts(self.shape)
        shared = counts == (1,)
        apart = len(counts) == len(self.shape) and counts[0] == self.shape[0] > 1
        bits = self.scheme.kind.bits * math.prod(self.shape[1:])
        whole = self.scheme.store == "native" or (
            self.scheme.store == "packed_u8" and bits % 8 == 0
        )
        if not whole or not (shared or apart) or not rows.size:
            return xp.take(self.unpack(), rows, axis=0)
        flat = rows.reshape(-1)
        held = self.codes
        if self.scheme.store != "native":  # a row is so many bytes
            held = held[: self.shape[0] * bits // 8].reshape(self.shape[0], -1)
        taken = xp.take(held, flat, axis=0)
        few = {"codes": taken if held is self.codes else taken.reshape(-1)}
        for name, part in self.parts().items():
            if name != "codes":
                few[name] = xp.take(part, flat, axis=0) if apart else part
        shape = (flat.size, *self.shape[1:])
        made = replace(self, shape=shape, **few).unpack()
        return made.reshape(*rows.shape, *self.shape[1:])

    def arrays(self) -> dict[str, Array]:
        """The saved arrays: the parts, and as "scheme" the bytes of a JSON text."""
        text = self.scheme.to_text(self.shape, self.dtype)
        scheme = np.frombuffer(text.encode(), np.uint8)
        return {**self.parts(), "scheme": scheme}

    def parts(self) -> dict[str, Array]:
        """The arrays by name."""
        parts = {"codes": self.codes, "scales": self.scales}
        if self.zero_points is not None:
            parts["zero_points"] = self.zero_points
        return parts

    def put(self, device: Device) -> Packed:
        """On another device."""
        parts = {name: device.put(part) for name, part in self.parts().items()}
        return replace(self, **parts)

    def astype(self, dtype: Any, copy: bool = False) -> Packed:
        """The same numbers, standing for an array of another dtype."""
        return replace(self, dtype=np.dtype(dtype))

    def tobytes(self) -> bytes:
        """All of it, to compare."""
        host = Device("cpu")
        return b"".join(host.put(a).tobytes() for a in self.arrays().values())

    def __repr__(self) -> str:
        return f"Packed({self.shape}, {self.dtype}, {self.scheme})"
