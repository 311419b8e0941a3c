"""Pooling: windows over maps in blocks of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels.records import WINDOWS
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution.conv import tables, window_of
from burnish.plan.cpu.convolution.geometry import tiled
from burnish.plan.cpu.layout import CHANNELS, LANES, blocks, pixels
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Node, Value, constant


@lower("max_pool", "window_sum")
def pool(b: Builder, node: Node) -> None:
    x = node.args[0]
    need(isinstance(x, Value) and len(x.shape) > 2, "its input is a parameter")
    check(node, x)
    size, rank = node.options["kernel_size"], len(x.shape) - 2
    kernel = tuple(size) if isinstance(size, tuple | list) else (size,) * rank
    w = window_of(node, kernel)
    source = b.spot(x, CHANNELS)
    tiles = tiled(x.shape[0], w, b.window_rows, LANES, LANES, LANES)
    nothing, scales = b.constant(constant([0])), node.options.get("scales")
    if scales is not None:
        scales = b.constant(scales.then(lambda a: _of_pixels(a, x.shape[0], tiles.to)))
    work = node.result.size * len(tiles.runs)
    b.add(
        "window", b.shares(work), x=source, weight=scales, bias=nothing,
        out=b.result(node.result, CHANNELS), **tables(b, tiles),
        mode=WINDOWS["max" if node.name == "max_pool" else "sum"],
        blocks=blocks(x.shape[1]), x_step=LANES * pixels(x.shape, 1), weight_step=0,
        out_step=LANES * pixels(node.result.shape, 1), act=0, low=0, high=0,
        scale=node.options.get("scale", 1.0),
    )  # fmt: skip


def _of_pixels(scales: Any, batch: int, order: Any) -> Any:
    """Factors of the places of one map, for all maps' pixels in the order of tiles."""
    return np.tile(scales.reshape(-1), batch)[order]
