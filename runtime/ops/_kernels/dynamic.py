"""Dynamic quantization to 8 bits: scales come from the range of the values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnish.backend import namespace
from burnish.ops.quantized.blocks import fake_quantize
from burnish.steps import step


def rounded_by_range(x: Any) -> Any:
    """x after DynamicQuantizeLinear and DequantizeLinear, in its dtype."""
    size = math.prod(x.shape)
    if not size:
        return x
    return fake_quantize(x, *_params(x), value="q8f", blocks=(size,))


@step
def _params(x: Any) -> Any:
    """The scale and the zero point of -128 to 127 that cover x and 0: (1,) each."""
    xp = namespace(x)
    low = xp.minimum(x.min(), 0).astype(np.float32).reshape(1)
    high = xp.maximum(x.max(), 0).astype(np.float32).reshape(1)
    scale = (high - low) / np.float32(255)
    scale = xp.where(scale > 0, scale, np.float32(1))
    zero = xp.clip(xp.rint(-low / scale) - 128, -128, 127)
    return scale, zero.astype(np.int8)
