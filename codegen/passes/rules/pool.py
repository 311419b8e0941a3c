"""Fuse LocalResponseNorm, and AdaptiveAvgPool2d with uneven windows."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, constant, integers, scalar
from burnish.codegen.passes.pattern import Any, Match, Rule, Scalar, either, op
from burnish.codegen.passes.rules.norm import axes_over
from burnish.codegen.passes.shapes.dims import declared, numbers
from burnish.codegen.symbolic.sizes import ONE

# --- x / (k + alpha * mean square of the channels around) ** beta ---

_X = Any("x")
_ONE_IMAGE = either(
    op("Reshape", op("Mul", _X, _X), Any("shape"), name="image"),
    op("Unsqueeze", op("Mul", _X, _X), Any("shape"), name="image"),
)
_MEANS = op("AveragePool", op("Pad", _ONE_IMAGE, Any("pads"), name="pad"), name="pool")
_SQUARES = either(
    op("Squeeze", _MEANS, Any("axes"), name="back"),
    op("Reshape", _MEANS, Any("axes"), name="back"),
)
_SUMMED = _SQUARES * Scalar("alpha") + Scalar("k")
_RESPONSE = _X / either(op("Pow", _SUMMED, Scalar("beta")), _SUMMED)


def _check_response(found: Match) -> str | None:
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
    strides, pads = (pool.attributes.get(name) for name in ("strides", "pads"))
    plain = attribute(pool, "auto_pad", "NOTSET") == "NOTSET"
    if kernel[1:] != [1] * (len(kernel) - 1) or not plain:
        return "more than channels is pooled over"
    if strides is not None and set(strides.as_ints()) != {1}:
        return "places are left out"
    if pads is not None and any(pads.as_ints()):
        return "the pool pads on its own"
    filled = len(pad.inputs) < 3 or pad.inputs[2] is None or scalar(pad.inputs[2]) == 0
    if not filled or attribute(pad, "mode", "constant") != "constant":
        return "other than zeros are around"
    if len(pad.inputs) > 3 and pad.inputs[3] is not None:
        return "the padding names its axes"
    return (
        None if integers(found["pads"]) == around else "there are more or less around"
    )


def _response(found: Match) -> ir.Node:
    size = found.named["pool"].attributes["kernel_shape"].as_ints()[0]
    attributes = [ir.AttrInt64("size", size)]
    for name in ("alpha", "beta", "k"):
        number = scalar(found.values.get(name))
        attributes.append(ir.AttrFloat32(name, 1.0 if number is None else number))
    return ir.Node("burnish", "LocalResponseNorm", [found["x"]], attributes)


# --- windows that overlap where sizes do not divide ---

_WINDOWS = op("GatherND", op("Transpose", _X, name="last"), Any("table"), name="all")
_UNEVEN = op("ReduceMean", op("Transpose", _WINDOWS, name="first"), name="main")


def _places(size: int, count: int) -> np.ndarray | None:
    """The places in each of `count` windows, (count, length), if all are as long."""
    starts = np.arange(count) * size // count
    ends = -(np.arange(1, count + 1) * -size // count)
    lengths = set((ends - starts).tolist())
    return starts[:, None] + np.arange(lengths.pop()) if len(lengths) == 1 else None


def _check_uneven(found: Match) -> str | None:
    dims, table = _image(found["x"]), constant(found["table"])
    orders = [found.named[name].attributes.get("perm") for name in ("last", "first")]
    axes = axes_over(found.named["main"])
    if dims is None or table is None or len(table.shape) != 5:
        return "the places are not known"
    if [p and list(p.as_ints()) for p in orders] != [[2, 3, 0, 1], [4, 5, 0, 1, 2, 3]]:
        return "the axes are in another order"
    if axes != [-3, -1] or attribute(found.named["main"], "keepdims", 1):
        return "the mean is not over the windows"
    if attribute(found.named["all"], "batch_dims", 0):
        return "elements of several batches are gathered"
    rows, _, columns, _, _ = table.numpy().shape
    high, wide = _places(dims[0], rows), _places(dims[1], columns)
    if high is None or wide is None:
        return "windows differ in size"
    wanted = np.stack(
        np.broadcast_arrays(high[:, :, None, None], wide[None, None]), axis=-1
    )
    fits = np.array_equal(table.numpy(), wanted)
    return None if fits else "other places are taken"


def _image(value: ir.Value) -> list[int] | None:
    """Height and width."""
    sizes = numbers((declared(value) or [])[2:])
    return sizes if sizes is not None and len(sizes) == 2 else None


def _uneven(found: Match) -> ir.Node:
    table = constant(found["table"])
    assert table is not None
    rows, _, columns, _, _ = table.shape.numpy()
    attributes = [ir.AttrInt64s("output_size", [rows, columns])]
    return ir.Node("burnish", "AdaptiveAveragePool", [found["x"]], attributes)


RULES = (
    Rule(
        "LocalResponseNorm",
        _RESPONSE,
        _check_response,
        _response,
        ("burnish", "LocalResponseNorm", 1),
    ),
    Rule(
        "AdaptiveAvgPool of uneven windows",
        _UNEVEN,
        _check_uneven,
        _uneven,
        ("burnish", "AdaptiveAveragePool", 1),
    ),
)
