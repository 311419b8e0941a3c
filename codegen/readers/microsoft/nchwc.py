"""NCHWc: images in blocks of channels, as onnxruntime lays them out for a CPU.

In: nodes of com.microsoft.nchwc, as ORT_ENABLE_ALL saves them, with weights in blocks
of 8 or 16 filters. Out: ONNX's convolutions and pooling on (N, C, H, W).
Invariant: channels that fill up a block stay until the ReorderOutput behind them, so
that every number is the one that onnxruntime computes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    array_of,
    size,
)
from burnish.codegen.readers.microsoft.shared.layouts import (
    to_channels_first,
    to_channels_last,
)
from burnish.codegen.weights import constants

LAYOUTS = "com.microsoft.nchwc"
SMALL, LARGE = 8, 16
"""The sizes of blocks: of processors with AVX2, and of those with AVX-512 or NEON."""
_IMAGE = 4
_UNCLEAR = (
    "blocks of 8 or of 16 channels, which nothing in the file tells; save with "
    "ORT_ENABLE_EXTENDED"
)


def convolutions(model: ir.Model) -> list[ir.Node]:
    """Those of the main graph in blocks."""
    return [n for n in model.graph if n.domain == LAYOUTS and n.op_type == "Conv"]


def block_size(convs: Iterable[ir.Node]) -> int | None:
    """How many channels a block has, where a size or padding in the model tells."""
    for conv in convs:
        shape = array_of(conv.inputs[1], "filters").shape if conv.inputs[1:] else ()
        if len(shape) != _IMAGE:
            continue
        filters, channels = shape[:2]
        if filters % LARGE:
            return SMALL
        alone = conv.attributes.get_int("group", 1) == 1
        if alone and SMALL <= channels < LARGE:
            return LARGE if _is_plain(conv.inputs[0]) else SMALL
        if alone and channels % LARGE and channels > LARGE:
            return SMALL
        if _filled_up(conv, filters) >= SMALL:
            return LARGE
    return None


def _filled_up(conv: ir.Node, filters: int) -> int:
    """How many filters only fill up the last block, at least."""
    cuts = [
        filters - user.attributes["channels"].as_int()
        for user in conv.outputs[0].consumers()
        if user.domain == LAYOUTS and user.op_type == "ReorderOutput"
    ]
    bias = conv.inputs[2] if len(conv.inputs) > 2 else None
    if bias is not None:
        (used,) = np.nonzero(array_of(bias, "a bias"))
        cuts.append(filters - 1 - int(used[-1]) if used.size else 0)
    return max(cuts, default=0)


def _is_plain(x: ir.Value | None) -> bool:
    """Whether x is no image in blocks: an input, or another operator's result."""
    made = None if x is None else x.producer()
    while made is not None and made.domain != LAYOUTS and made.inputs:
        made = made.inputs[0].producer() if made.inputs[0] is not None else None
    return made is None or made.domain != LAYOUTS or made.op_type == "ReorderOutput"


def body(op: Builder, node: ir.Node, block: int | None) -> ir.Value:
    """What the node means on (N, C, H, W)."""
    if block is None:
        raise Unreadable(_UNCLEAR)
    x = node.inputs[0]
    given = {name: held.value for name, held in node.attributes.items()}
    match node.op_type:
        case "ReorderInput":
            return _filled(op, x, given.get("channels_last", 0), block)
        case "ReorderOutput":
            axes = _IMAGE if given.get("channels_last", 0) else 0
            cut = op.Slice(x, [0], [given["channels"]], [1])
            return to_channels_last(op, cut, axes)
        case "Upsample":
            return _upsampled(op, x, **given)
        case "Conv":
            return _conv(op, node, given, block)
    return op.make("", node.op_type, (x,), given)[0]


def _filled(
    op: Builder, x: ir.Value | None, channels_last: int, block: int
) -> ir.Value:
    """x with channels of zeros up to whole blocks, counted at run time if need be."""
    channels = size(x, -1 if channels_last else 1)
    image = to_channels_first(op, x, _IMAGE if channels_last else 0)
    made: ir.Value
    if channels is None:
        missing = op.Mod(op.Neg(op.Shape(image, start=1, end=2)), [block])
        made = op.Pad(image, op.Concat([0] * 5, missing, [0, 0], axis=0))
    elif missing := -channels % block:
        made = op.Pad(image, [0, 0, 0, 0, 0, missing, 0, 0])
    else:
        made = op.Identity(image)
    return made


def _upsampled(
    op: Builder,
    x: ir.Value | None,
    *,
    scales: list[int],
    mode: str = "nearest",
    coordinate_transformation_mode: str = "asymmetric",
) -> ir.Value:
    """Whole scales; the nearest pixels are repeated."""
    repeats = mode == "nearest"
    made: ir.Value = op.Resize(
        *(x, None, np.array(scales, np.float32)),
        mode=mode,
        coordinate_transformation_mode="asymmetric"
        if repeats
        else coordinate_transformation_mode,
        nearest_mode="floor" if repeats else None,
    )
    return made


def _conv(op: Builder, node: ir.Node, given: dict[str, object], block: int) -> ir.Value:
    """A convolution with its filters in order."""
    image, weight, *others = node.inputs
    blocked = array_of(weight, "filters")
    channels = blocked.shape[1]
    groups = node.attributes.get_int("group", 1)
    depthwise = channels == 1 and groups == len(blocked)
    inner = 1 if depthwise or channels < block else block
    filters = op.value(ordered(blocked, inner, block))
    constants.mark_weight(op.nodes[-1])
    y = op.make("com.microsoft", "FusedConv", (image, filters, *others), given)
    return y[0]


def ordered(blocked: np.ndarray, inner: int, outer: int) -> np.ndarray:
    """Filters (O, I, H, W) of the same numbers in blocks of `outer` and `inner`."""
    filters, channels, *window = blocked.shape
    rows = blocked.reshape(
        *(filters // outer, channels // inner, *window, inner, outer)
    )
    return rows.transpose(0, 5, 1, 4, 2, 3).reshape(blocked.shape).copy()
