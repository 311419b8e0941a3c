"""Layouts of rows of numbers, which products read and write: plain, or in blocks."""

from __future__ import annotations

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import PLAIN, Layout, pixels
from burnish.plan.graph import Node, Value

_COLLIDING = 256
"""Numbers in a row, or a multiple of them, with which rows of a tile would lie in the
same few places of the first-level cache; blocks are side by side."""

_MANY_ROWS = 64
"""Rows from which on it pays to bring them into blocks."""


def rows_layout(b: Builder, x: Value) -> Layout:
    """How rows of numbers, along the last axis, are read for products."""
    axis = len(x.shape) - 1
    is_blocked = b.blocked_axis(x) == axis or _collide(x)
    return Layout("blocked", axis) if is_blocked else PLAIN


def result_layout(b: Builder, y: Value) -> Layout:
    """How a product writes its rows: in blocks where all that read them want those."""
    wants = y.place in b.readers and _collide(y) and _all_want_blocks(b, y)
    return Layout("blocked", len(y.shape) - 1) if wants else PLAIN


def _collide(x: Value) -> bool:
    axis = len(x.shape) - 1
    return x.shape[axis] % _COLLIDING == 0 and pixels(x.shape, axis) >= _MANY_ROWS


def _all_want_blocks(b: Builder, y: Value) -> bool:
    """Whether products alone read a value, or element-wise steps for such."""
    for node in _readers(b, y):
        if node is not None and node.name == "program" and node.result.shape == y.shape:
            made = node.result
            if not all(_multiplies(each, made) for each in _readers(b, made)):
                return False
        elif not _multiplies(node, y):
            return False
    return True


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
