"""Round ties between two codes of a quantized result as onnxruntime does.

They are common where one scale is a short fraction of another. onnxruntime
computes with the ratio of the scales, in which they are exact, and sums and products
round to the even code, not to the even multiple of the scale. Elsewhere single
precision decides, and the form with the scales themselves, which reads and trains as
a quantized model does, gives the same codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.codegen.readers.microsoft.shared.bodies import Builder

ONE = np.array(1, np.float32)
SUMS = 15 * 2**9
PRODUCTS = 225 * 2**9
"""Ratios that are multiples of one over this make halves: of sums of two codes and of
averages; of products of two codes."""


def is_short(steps: int, x_scale: Any, y_scale: Any, factor: Any = None) -> bool:
    """Whether x_scale * factor / y_scale, all in the file, is a multiple of 1 / steps.

    Single precision may have moved it by a unit in the last place. That is no evidence
    where the ratio is so large that every number is near a multiple.
    """
    held = [None if v is None else v.const_value for v in (x_scale, y_scale, factor)]
    if held[0] is None or held[1] is None or (factor is not None and held[2] is None):
        return False
    x, y, more = (1 if each is None else each.numpy() for each in held)
    places = np.asarray(x, np.float64) * more / y * steps
    near = np.minimum(places * 2.0**-22, 2.0**-7)
    return bool((abs(places - np.rint(places)) <= near).all())


def in_whole_steps(op: Builder, y: Any, scale: Any) -> Any:
    """y with the codes that it has in steps of one over a whole number.

    onnxruntime rounds a softmax's 1 / scale down.
    """
    if scale.const_value is None:
        return op.Mul(y, op.Mul(op.Floor(op.Reciprocal(scale)), scale))
    step = scale.const_value.numpy().astype(np.float32)
    with np.errstate(all="ignore"):  # no scale is zero or infinite, but in a bad file
        ratio = np.floor(1 / step) * step
    return y if (ratio == 1).all() else op.Mul(y, np.asarray(ratio))


def even_codes(op: Builder, y: Any, zero_point: Any) -> Any:
    """The codes of y, which is in units of its scale; halves become the even code."""
    if zero_point is None:
        return op.QuantizeLinear(y, ONE)
    y = op.Add(y, op.CastLike(zero_point, y))
    return op.QuantizeLinear(y, ONE, op.Sub(zero_point, zero_point))
