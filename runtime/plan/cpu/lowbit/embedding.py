"""Rows of tables by number: of floats, or of codes, which become floats then."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.lowbit import Packed
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.lowbit.packed_parts import PackedParts, numbers
from burnish.plan.cpu.moves.gather import whole_numbers
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node


@lower("embedding")
def embedding(b: Builder, node: Node) -> None:
    """Rows by numbers of the call; where one is of no row, the call runs eagerly."""
    ids, weight = node.args[:2]
    need(len(weight.shape) == 2, "its rows")
    check(node, weight)
    width = weight.shape[1]
    _add(b, node, ids, weight, x=b.spot(weight), block=width, by_row=0, bits=0)


@lower("from_quantized")
def from_quantized(b: Builder, node: Node) -> None:
    """Rows of a table of codes."""
    weight, ids = node.args[:2]
    need(node.options["max_norm"] is None, "its rows have a greatest length")
    stored = weight.stored if isinstance(weight, Constant) else None
    held = stored.held if stored is not None else None
    need(isinstance(held, Packed) and len(held.shape) == 2, "its rows")
    assert stored is not None
    assert isinstance(held, Packed)
    need(held.dtype == np.float32, "its rows are not single precision")
    is_byte = held.scheme.kind.whole and held.scheme.kind.bits <= 8
    need(is_byte, f"its values are {held.scheme.value}")
    shape, level = held.shape, held.scheme.level
    counts, blocks = level.counts(shape), level.blocks(shape)
    if len(counts) == 1:  # a scale for all of it
        need(counts == (1,), "its blocks go over rows")
        counts, blocks = (1, 1), shape
    parts = PackedParts(stored, held)
    by_row = counts[1] if counts[0] > 1 else 0

    def spread(part: Any) -> Any:
        """A row for each row of the table, or one for all."""
        wide = np.asarray(part).astype(np.float32).reshape(counts)
        return np.repeat(wide, blocks[0], axis=0)[: shape[0]] if by_row else wide

    in_place = held.scheme.store == "packed_u8" and held.scheme.kind.bits == 4
    stored_as, dtype = (held.codes.shape, np.uint8) if in_place else (shape, np.int8)

    def codes(packed: Packed) -> Any:
        return (
            packed.codes if in_place else np.ascontiguousarray(numbers(packed), dtype)
        )

    size = (shape[0] if by_row else 1, counts[1])
    scales = parts.constant(lambda p: spread(p.scales), size, np.float32)
    zeros = None
    if held.zero_points is not None:
        zeros = b.constant(
            parts.constant(lambda p: spread(p.zero_points), size, np.float32)
        )
    _add(
        b, node, ids, weight, x=b.constant(parts.constant(codes, stored_as, dtype)),
        scales=b.constant(scales), zeros=zeros, block=min(blocks[1], shape[1]),
        by_row=by_row, bits=4 if in_place else 8,
    )  # fmt: skip


def _add(
    b: Builder, node: Node, ids: Any, weight: Any, *, x: Spot,
    scales: Spot | None = None, zeros: Spot | None = None, **how: int,
) -> None:  # fmt: skip
    places = whole_numbers(b, ids)
    rows, width = weight.shape
    b.add(
        "gather", 1, ids=places, x=x, scales=scales, zeros=zeros,
        out=b.result(node.result), fault=b.fault(), outer=1, count=ids.size,
        rows=rows, width=width, **how,
    )  # fmt: skip
