"""LoRA: a frozen weight and a product of two thin matrices that is trained.

value = base + alpha / rank * lora_B @ lora_A (https://arxiv.org/abs/2106.09685), a
weight of more axes as the matrix (its first, all others). lora_B starts as zeros, so at
first nothing changes. QLoRA holds the base in small integers, whose blocks share a
scale (https://arxiv.org/abs/2305.14314).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnish import ops
from burnish.errors import InputError
from burnish.lowbit import Level, QuantScheme
from burnish.nn import init
from burnish.nn.adapters.reparameterize import Reparameterizer
from burnish.nn.core.param import Param, Stored


class Adapter(Param):
    """A parameter that was added to train instead of others."""

    __slots__ = ()
    is_adapter = True


@dataclass(frozen=True)
class Lora(Reparameterizer):
    """Adapters of `rank`; alpha: their weight times rank, None is `rank`.

    dtype: the adapters'; None is the weight's, but float32 for halves.
    """

    rank: int
    alpha: float | None = None
    dtype: Any = None

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise InputError(f"LoRA rank: expected 1 or more, got {self.rank}")

    @property
    def scale(self) -> float:
        """The factor of the product of the adapters."""
        return 1.0 if self.alpha is None else self.alpha / self.rank

    def fits(self, path: str, param: Param) -> bool:
        return param.ndim >= 2 and param.size > 0

    def split(self, param: Param) -> dict[str, Stored]:
        param.freeze()
        return {"base": param, **self._adapters(param)}

    def _adapters(self, param: Param) -> dict[str, Stored]:
        rows, columns = param.shape[0], math.prod(param.shape[1:])
        dtype = self.dtype
        if dtype is None:
            dtype = np.float32 if param.dtype.itemsize < 4 else param.dtype
        bound = columns**-0.5
        return {
            "lora_A": Adapter(init.uniform(bound), (self.rank, columns), dtype),
            "lora_B": Adapter(init.zeros, (rows, self.rank), dtype),
        }

    def product(self, x: Any, transposed: bool, **parts: Any) -> Any:
        base, a, b = self.base(**parts), parts["lora_A"], parts["lora_B"]
        if len({x.dtype, base.dtype, a.dtype, b.dtype}) > 1:
            return None
        if transposed:
            base, a, b = base.T, b.T, a.T
        made = ops.linear(x, base)  # first: it explains a wrong x
        change = (x.reshape(-1, x.shape[-1]) @ a.T * self.scale) @ b.T
        return made + change.reshape(made.shape)

    def value(self, **parts: Any) -> Any:
        base, a, b = self.base(**parts), parts["lora_A"], parts["lora_B"]
        return ops.low_rank_add(base, b, a, scale=self.scale)


@dataclass(frozen=True)
class QLora(Lora):
    """LoRA on a base of `bits` bits (8, 4 or 2), a scale for `block_size` of a row."""

    bits: int = 4
    block_size: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits not in (2, 4, 8):
            raise InputError(f"QLoRA bits: expected 8, 4 or 2, got {self.bits}")

    def split(self, param: Param) -> dict[str, Stored]:
        scheme = QuantScheme(f"q{self.bits}s", level=Level.block(self.block_size))
        base = param.copy()
        base.assign(base.quantize(scheme))
        return super().split(base)
