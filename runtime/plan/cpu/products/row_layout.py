"""Layouts of rows of numbers, which products read and write: plain, or in blocks."""

from __future__ import annotations

from typing import TypeGuard

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import PLAIN, Layout, pixels
from burnish.plan.cpu.products import first_level
from burnish.plan.graph import Node, Value

_COLLIDING = 256
"""Numbers in a row, or a multiple of them, with which rows of a tile would lie in the
same few places of the first-level cache; blocks are side by side."""

_MANY_ROWS = 64
"""Rows from which on it pays to bring them into blocks."""

_WRITTEN_ROWS, _WRITTEN_BYTES = 192, 5 << 18
"""Where that cache has many ways, from these rows on and up to these bytes, a product
reads blocks that another one writes a few percent faster; more would collide in the
second level."""


def rows_layout(b: Builder, x: Value) -> Layout:
    """How rows of numbers, along the last axis, are read for products."""
    axis = len(x.shape) - 1
    is_blocked = b.blocked_axis(x) == axis or _want_blocks(b, x)
    return Layout("blocked", axis) if is_blocked else PLAIN


def result_layout(b: Builder, y: Value) -> Layout:
    """How a product writes its rows: in blocks where all that read them want those."""
    if y.place not in b.readers or not collide(y) or not _all_want_blocks(b, y):
        return PLAIN
    axis = len(y.shape) - 1
    is_kept = pixels(y.shape, axis) >= _WRITTEN_ROWS and 4 * y.size <= _WRITTEN_BYTES
    is_kept = is_kept and not b.has_row_tiles
    read = [y, *(node.result for node in _readers(b, y) if _is_step_of(node, y))]
    is_blocked = is_kept or any(_want_blocks(b, each) for each in read)
    return Layout("blocked", axis) if is_blocked else PLAIN


def collide(x: Value) -> bool:
    """Whether rows that are read along columns lie in few places of a cache."""
    axis = len(x.shape) - 1
    return x.shape[axis] % _COLLIDING == 0 and pixels(x.shape, axis) >= _MANY_ROWS


def _want_blocks(b: Builder, x: Value) -> bool:
    """Whether rows that collide are to be in blocks.

    Where that cache has many ways, or tiles of rows have a kernel of their own, plain
    rows cost less than bringing them into blocks; a weight's gradient, which takes a
    few numbers of each row, wants them on any cache.
    """
    if not collide(x):
        return False
    if b.half or not (first_level.is_wide() or b.has_row_tiles):
        return True
    return any(_sums_for_weight(node, x) for node in _readers(b, x))


def _all_want_blocks(b: Builder, y: Value) -> bool:
    """Whether products alone read a value, or element-wise steps for such."""
    for node in _readers(b, y):
        if _is_step_of(node, y):
            made = node.result
            if not all(_multiplies(each, made) for each in _readers(b, made)):
                return False
        elif not _multiplies(node, y):
            return False
    return True


def _is_step_of(node: Node | None, y: Value) -> TypeGuard[Node]:
    """Whether a node is an element-wise step whose result has y's shape."""
    return node is not None and node.name == "program" and node.result.shape == y.shape


def _readers(b: Builder, x: Value) -> list[Node | None]:
    """Who reads a value; None where it is a result of the plan too.

    An activation's gradient has its value among its lines, but not its operands.
    """
    found: list[Node | None] = [
        node
        for node in b.readers.get(x.place, ())
        if node.name != "program" or any(arg is x for arg in node.args)
    ]
    return [*found, None] if x.place in b.results else found


def _multiplies(node: Node | None, x: Value) -> bool:
    """Whether a node is a product of rows, of x."""
    if node is None:
        return False
    return node.name == "linear gradient" or (
        node.name == "linear" and node.args[0] is x
    )


def _sums_for_weight(node: Node | None, x: Value) -> bool:
    """Whether a node gives a weight's gradient, of x."""
    if node is None or node.name != "linear gradient":
        return False
    _, to_weight, *_ = node.lines[-1].function.needed
    return to_weight and (node.args[0] is x or node.args[2] is x)
