"""Fuse LocalResponseNorm, and AdaptiveAvgPool2d with uneven windows."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared, numbers
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Rewritten,
    Rule,
    Scalar,
    either,
    op,
)
from burnish.codegen.passes.rules.norm import axes_over
from burnish.codegen.symbolic.sizes import ONE

# --- x / (k + alpha * mean square of the channels around) ** beta ---

_X = Any("x")
_ONE_IMAGE = op("Reshape|Unsqueeze", _X * _X, Any("shape"), name="image")
_MEANS = op("AveragePool", op("Pad", _ONE_IMAGE, Any("pads"), name="pad"), name="pool")
_SQUARES = op("Reshape|Squeeze", _MEANS, Any("axes"), name="back")
_SUMMED = _SQUARES * Scalar("alpha") + Scalar("k")
_RESPONSE = _X / either(_SUMMED ** Scalar("beta"), _SUMMED)


def _response(found: Match) -> Rewritten:
    before, after = declared(found["x"]), declared(found.named["back"].outputs[0])
    image = declared(found.named["image"].outputs[0])
    if before is None or image is None or None in before or before != after:
        return "the shapes are not known, or not alike"
    if image[:3] != [before[0], ONE, before[1]]:
        return "the channels are not pooled over"
    pool, pad = found.named["pool"], found.named["pad"]
    kernel = list(pool.attributes["kernel_shape"].as_ints())
    size, rank = kernel[0], len(image)
    around = [0] * 2 * rank
    around[2], around[2 + rank] = size // 2, (size - 1) // 2
    strides, pads = (pool.attributes.get_ints(name, ()) for name in ("strides", "pads"))
    plain = g.attribute(pool, "auto_pad", "NOTSET") == "NOTSET"
    if kernel[1:] != [1] * (len(kernel) - 1) or not plain:
        return "more than channels is pooled over"
    if set(strides) - {1}:
        return "places are left out"
    if any(pads):
        return "the pool pads on its own"
    filled = (
        len(pad.inputs) < 3 or pad.inputs[2] is None or g.scalar(pad.inputs[2]) == 0
    )
    if not filled or g.attribute(pad, "mode", "constant") != "constant":
        return "other than zeros are around"
    if len(pad.inputs) > 3 and pad.inputs[3] is not None:
        return "the padding names its axes"
    if g.integers(found["pads"]) != around:
        return "there are more or less around"
    attributes: dict[str, float] = {"size": size}
    for name in ("alpha", "beta", "k"):
        attributes[name] = found.number(name) if name in found.values else 1.0
    return ir.node("LocalResponseNorm", [found["x"]], attributes, domain="burnish")


# --- windows that overlap where sizes do not divide ---

_WINDOWS = op("GatherND", op("Transpose", _X, name="last"), Any("table"), name="all")
_TURNS = (("last", 4), ("first", 6))
_UNEVEN = op("ReduceMean", op("Transpose", _WINDOWS, name="first"), name="main")


def _places(size: int, count: int) -> np.ndarray | None:
    """The places in each of `count` windows, (count, length), if all are as long."""
    starts = np.arange(count) * size // count
    ends = -(np.arange(1, count + 1) * -size // count)
    lengths = set((ends - starts).tolist())
    return starts[:, None] + np.arange(lengths.pop()) if len(lengths) == 1 else None


def _uneven(found: Match) -> Rewritten:
    dims, table = _image(found["x"]), g.constant(found["table"])
    orders = [g.order_of(found.named[name], rank) for name, rank in _TURNS]
    axes = axes_over(found.named["main"])
    if dims is None or table is None or len(table.shape) != 5:
        return "the places are not known"
    if orders != [[2, 3, 0, 1], [4, 5, 0, 1, 2, 3]]:
        return "the axes are in another order"
    if axes != [-3, -1] or g.attribute(found.named["main"], "keepdims", 1):
        return "the mean is not over the windows"
    if g.attribute(found.named["all"], "batch_dims", 0):
        return "elements of several batches are gathered"
    rows, _, columns, _, _ = table.numpy().shape
    high, wide = _places(dims[0], rows), _places(dims[1], columns)
    if high is None or wide is None:
        return "windows differ in size"
    wanted = np.stack(
        np.broadcast_arrays(high[:, :, None, None], wide[None, None]), axis=-1
    )
    if not np.array_equal(table.numpy(), wanted):
        return "other places are taken"
    size = {"output_size": [rows, columns]}
    return ir.node("AdaptiveAveragePool", [found["x"]], size, domain="burnish")


def _image(value: ir.Value) -> list[int] | None:
    """Height and width."""
    sizes = numbers((declared(value) or [])[2:])
    return sizes if sizes is not None and len(sizes) == 2 else None


RULES = (
    Rule("LocalResponseNorm", _RESPONSE, _response),
    Rule("AdaptiveAvgPool of uneven windows", _UNEVEN, _uneven),
)
