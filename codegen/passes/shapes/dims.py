"""Shape transfer: types and helpers of the rules, and broadcasting.

A rule is given the node, its inputs' sizes and a way to ask for the numbers in an
input; it gives each output's sizes, None where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.sizes import ONE, Size, parse

Dims = list[Size | None]
Sizes = list[Size | None]
Ask = Callable[[ir.Value | None], Sizes | None]
Shapes = Sequence[Dims | None]
Rule = Callable[[ir.Node, list[Dims | None], Ask], Shapes]


def declared(value: ir.Value | None) -> Dims | None:
    """The shape that the Graph has for a value."""
    if value is None:
        return None
    if value.shape is None:
        tensor = value.const_value
        return None if tensor is None else [parse(n) for n in tensor.shape.numpy()]
    dims = [d if isinstance(d, int) else d.value for d in value.shape]
    return [None if d is None else parse(d) for d in dims]


def known(sizes: Sizes | None) -> list[Size] | None:
    """The sizes where all are known."""
    if sizes is None or any(size is None for size in sizes):
        return None
    return [size for size in sizes if size is not None]


def numbers(sizes: Sizes | None) -> list[int] | None:
    """The sizes where all are numbers."""
    values = [None if s is None else s.value for s in sizes or [None]]
    return None if None in values else [n for n in values if n is not None]


def axis_of(node: ir.Node, default: int = 0) -> int:
    """The attribute `axis`."""
    return node.attributes.get_int("axis", default)


def axes_of(node: ir.Node, ask: Ask, place: int = 1) -> list[int] | None:
    """Axes given as an attribute or, in newer opsets, as an input."""
    held = node.attributes.get_ints("axes")
    if held is not None:
        return list(held)
    if len(node.inputs) > place and node.inputs[place] is not None:
        return numbers(ask(node.inputs[place]))
    return None


def broadcast(shapes: Sequence[Dims | None]) -> Dims | None:
    """NumPy's rule; two names that differ leave the size open, one may be 1."""
    given = [dims for dims in shapes if dims is not None]
    if len(given) < len(shapes) or not given:
        return None
    return transfer.broadcast(given, _together)


def _together(sizes: list[Size | None]) -> Size | None:
    others = [size for size in sizes if size != ONE]
    for size in others:
        if size is not None and (size.value or 0) > 1:
            return size
    if not others:
        return ONE
    return others[0] if all(size == others[0] for size in others) else None
