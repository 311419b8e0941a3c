"""Shape transfer: types and helpers of the rules, and broadcasting.

A rule is given the node, its inputs' sizes and a context; it gives each output's sizes,
None where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.known import KNOWN, Known
from burnish.codegen.symbolic.sizes import Size, parse

Dims = list[Size | None]
Sizes = list[Size | None]
Ask = Callable[[ir.Value | None], Sizes | None]
Integers = Callable[[ir.Value | None], list[int] | None]
Shapes = Sequence[Dims | None]


@dataclass(frozen=True)
class Context:
    """What rules need beside a node and the sizes of its inputs.

    ask: the numbers in an input. is_rounded: what strides make of open sizes is a
    rounded quotient, else not known.
    """

    ask: Ask
    sizes: Known = KNOWN
    is_rounded: bool = False

    def integers(self, value: ir.Value | None) -> list[int] | None:
        """The numbers in an input, None where one is not known."""
        return numbers(self.ask(value))


Rule = Callable[[ir.Node, list[Dims | None], Context], Shapes]


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


def axes_of(node: ir.Node, ask: Integers, place: int = 1) -> list[int] | None:
    """Axes given as an attribute or, in newer opsets, as an input.

    ask: the integers in an input.
    """
    held = node.attributes.get_ints("axes")
    if held is not None:
        return list(held)
    return ask(node.inputs[place]) if len(node.inputs) > place else None


def broadcast(shapes: Sequence[Dims | None], sizes: Known = KNOWN) -> Dims | None:
    """NumPy's rule, for shapes that are all known."""
    given = [dims for dims in shapes if dims is not None]
    if len(given) < len(shapes) or not given:
        return None
    return transfer.broadcast(given, sizes.spread)
