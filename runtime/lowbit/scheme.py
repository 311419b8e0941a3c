"""QuantScheme: data type, granularity and storage of quantization."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from burnish import ops
from burnish._files import jsontext
from burnish._files.budget import Budget
from burnish.autodiff import Variable
from burnish.backend import Array, namespace, on_host
from burnish.errors import InputError
from burnish.lowbit.calibration import Calibration
from burnish.lowbit.level import Level
from burnish.lowbit.packed import Packed
from burnish.lowbit.tensor import QuantizedTensor
from burnish.ops.quantized.quantize import small_type
from burnish.ops.quantized.small import SMALL, STORES, Small, small

VALUES = tuple(SMALL)
_PARAMS = ("float32", "float16", "bfloat16")
_FLOATS = (*_PARAMS, "float64")
_NO_SCHEME = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


_AT_ONCE = 2**22
"""Values that are quantized together where rows are independent: memory for a few
copies of so many, not of the whole array. Rows by 16 end a word of `packed_u32`."""


class QParams(NamedTuple):
    """Scales and, of affine schemes, zero points: one number a block."""

    scales: Array
    zero_points: Array | None = None


@dataclass(frozen=True)
class QuantScheme:
    """A description of quantized values; it says all that reading them needs.

    mode: "symmetric" has 0 in the middle; "affine" shifts whole numbers by a zero
    point, so that they cover any range.
    value: "q8s" -127 to 127, "q8f" -128 to 127, "q16s", "q16f", "q4s", "q4f", "q2s",
    "q2f"; small floats "e4m3", "e5m2", "e2m1".
    level: how many values share a scale, see Level.
    store: "native" is a value an element of int8, int16 or uint8, "packed_u8" and
    "packed_u32" have no gaps; None is native from 8 bits on, else packed_u8.
    param: the scales' dtype: "float32", "float16", "bfloat16".
    """

    value: str = "q8s"
    mode: str = "symmetric"
    level: Level = field(default_factory=Level.tensor)
    store: str | None = None
    param: str = "float32"

    def __post_init__(self) -> None:
        kind = small(self.value)
        if self.store is None:
            store = "native" if kind.bits >= 8 else "packed_u8"
            object.__setattr__(self, "store", store)
        for name, found, known in (
            ("mode", self.mode, ("symmetric", "affine")),
            ("store", self.store, STORES),
            ("param", self.param, _PARAMS),
        ):
            if found not in known:
                raise InputError(
                    f"QuantScheme: expected {name} out of {', '.join(known)}, "
                    f"got {found!r}"
                )
        if not isinstance(self.level, Level):
            raise InputError(
                f"QuantScheme: expected a Level, as Level.channel(0), "
                f"got {self.level!r}"
            )
        if self.mode == "affine" and not kind.whole:
            raise InputError(
                f"QuantScheme: expected whole numbers for zero points, got "
                f"{self.value}; use mode='symmetric'"
            )

    @property
    def kind(self) -> Small:
        """Bits, minimum and maximum of the values."""
        return small(self.value)

    # --- numbers ---

    def params(self, low: Any, high: Any) -> QParams:
        """Scales and zero points that cover low to high; 0 is always a number itself.

        Symmetric: scale = max(|low|, |high|) / ((greatest - least) / 2). Affine:
        scale = (high - low) / (greatest - least), as ONNX's DynamicQuantizeLinear.
        Raises InputError for scales that the dtype `param` cannot hold.
        """
        xp, kind = namespace(low), self.kind
        low = xp.minimum(low, 0).astype(np.float32)
        high = xp.maximum(high, 0).astype(np.float32)
        if self.mode == "symmetric":
            half = np.float32((kind.high - kind.low) / 2)
            scales = self._held(xp.maximum(-low, high) / half)
            return QParams(scales)
        scales = self._held((high - low) / np.float32(kind.high - kind.low))
        zero = xp.rint(-low / scales.astype(np.float32)) + kind.low
        return QParams(scales, xp.clip(zero, kind.low, kind.high).astype(kind.dtype))

    def _held(self, scales: Any) -> Any:
        """In the dtype `param`; a scale of 0 becomes 1, one too small the least."""
        xp, dtype = namespace(scales), small_type(self.param)
        least = {"float16": 2.0**-24}.get(self.param, 2.0**-126)
        scales = xp.where(scales > 0, xp.maximum(scales, np.float32(least)), 1)
        if self.param == "float16" and bool((scales > 65504).any()):
            raise InputError(
                "QuantScheme: expected scales that float16 can hold, got "
                f"{float(scales.max())}; use param='float32'"
            )
        return scales.astype(dtype)

    def calibrated(self, x: Array, calibration: Calibration | None = None) -> QParams:
        """Scales and zero points for an array; None covers its whole range."""
        blocks = self.level.blocks(x.shape)
        return self.params(*(calibration or Calibration()).ranges(x, self, blocks))

    def fake(self, groups: Any, params: QParams) -> Any:
        """Arrays (..., n) with params (..., 1), rounded as this scheme does it."""
        blocks = (*(1 for _ in groups.shape[1:]), max(groups.shape[-1], 1))
        return ops.fake_quantize(groups, *params, value=self.value, blocks=blocks)

    def pack(self, x: Array, params: QParams | None = None) -> Packed:
        """An array quantized; params: None covers its whole range."""
        if x.dtype.kind not in "fV":
            raise InputError(f"quantize: expected floating-point values, got {x.dtype}")
        blocks = self.level.blocks(x.shape)
        step = max(_AT_ONCE // max(math.prod(x.shape[1:]), 1) // 16, 1) * 16
        if params is None and len(blocks) > 1 and blocks[0] == 1 and len(x) > step:
            parts = [self.pack(x[at : at + step]) for at in range(0, len(x), step)]
            return _stacked(parts, x)
        params = QParams(*(params or self.calibrated(x)))
        codes = ops.quantize_blocks(
            x,
            *params,
            value=self.value,
            blocks=blocks,
            store=self.store,
        )
        return Packed(self, codes, *params, tuple(x.shape), x.dtype)

    def quantize(self, tensor: Any, params: Any = None) -> QuantizedTensor:
        """The implementation of `tensor.quantize(scheme, params)`."""
        if params is not None:
            params = QParams(
                *(p.data if isinstance(p, Variable) else p for p in params)
            )
        return QuantizedTensor(self.pack(tensor.data, params), tensor.device.inner())

    # --- text ---

    def to_text(self, shape: tuple[int, ...], dtype: Any) -> str:
        """JSON that `from_text` reads: the scheme, and the array's shape and dtype."""
        return json.dumps(
            {
                "value": self.value,
                "mode": self.mode,
                "level": self.level.value(),
                "store": self.store,
                "param": self.param,
                "shape": list(shape),
                "dtype": np.dtype(dtype).name,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> tuple[Self, tuple[int, ...], np.dtype[Any]]:
        """A scheme, a shape and a dtype; InputError for a text that says none."""
        try:
            page = jsontext.parse(text.encode(), Budget(len(text), "quantization"))
            shape, dtype = tuple(page.pop("shape")), page.pop("dtype")
            level = Level.from_value(page.pop("level"))
            if not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError(f"shape {shape}")
            if dtype not in _FLOATS:
                raise ValueError(f"dtype {dtype}")
            return cls(level=level, **page), shape, small_type(dtype)
        except _NO_SCHEME as error:
            raise InputError(
                f"quantization: expected a scheme in JSON, got {text[:80]!r}: {error!r}"
            ) from None

    @classmethod
    def from_bytes(cls, data: Any) -> tuple[Self, tuple[int, ...], np.dtype[Any]]:
        """`from_text` of a text's bytes, an array of uint8."""
        text = on_host(data).astype(np.uint8).tobytes()
        return cls.from_text(text.decode("utf-8", "replace"))

    @classmethod
    def packed(cls, arrays: Mapping[str, Array]) -> Packed:
        """The opposite of `Packed.arrays`; InputError where they do not fit."""
        scheme, shape, dtype = cls.from_bytes(arrays["scheme"])
        scales = arrays["scales"]
        if scales.dtype.kind in "fV":  # a file of another precision has them in that
            scales = scales.astype(small_type(scheme.param), copy=False)
        made = Packed(
            scheme, arrays["codes"], scales, arrays.get("zero_points"), shape, dtype
        )
        scheme._check(made)
        return made

    def _check(self, packed: Packed) -> None:
        """Raise InputError unless the parts have the sizes that the shape asks for."""
        kind, shape = self.kind, packed.shape
        codes: tuple[str, tuple[int, ...]]
        if self.store == "native":
            codes = (kind.dtype.name if kind.whole else "uint8"), shape
        else:
            dtype, wide = ("uint8", 8) if self.store == "packed_u8" else ("uint32", 32)
            codes = dtype, (-(-math.prod(shape) * kind.bits // wide),)
        want = {"codes": codes, "scales": (self.param, self.level.counts(shape))}
        if self.mode == "affine":
            want["zero_points"] = kind.dtype.name, self.level.counts(shape)
        got = {name: (a.dtype.name, a.shape) for name, a in packed.parts().items()}
        if got != want:
            raise InputError(f"quantization, {self}: expected {want}, got {got}")

    def __str__(self) -> str:
        return f"{self.mode} {self.value} {self.level}"


def _stacked(parts: list[Packed], x: Array) -> Packed:
    """The rows of the parts below each other: x, quantized."""
    named = [part.parts() for part in parts]
    whole = {
        name: namespace(x).concatenate([part[name] for part in named])
        for name in named[0]
    }
    made = whole["codes"], whole["scales"], whole.get("zero_points")
    return Packed(parts[0].scheme, *made, tuple(x.shape), x.dtype)
