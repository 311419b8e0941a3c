"""Count multiply-accumulates of one forward pass from shapes.

Counted are the operators whose rules declare a cost: convolutions, matrix products,
recurrences and attention, of a graph (`macs`) or as the runtime runs them
(`operator_macs`). One multiply-accumulate is two FLOPs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import onnx_ir as ir

from burnish.codegen.ops import macs_by_function, macs_of
from burnish.codegen.ops.rule.costs import Macs, Shape, einsum, recurrent_steps
from burnish.codegen.passes.graph import static_dims


class Unknown(Exception):
    """A shape that is needed is not known."""


def macs(node: ir.Node) -> int | None:
    """The node's multiply-accumulates; None for an operator that is not counted.

    Raises Unknown where a shape has an open dimension.
    """
    count = macs_of(node.domain, node.op_type)
    if count is None:
        return None
    options = {name: a.value for name, a in node.attributes.items()}
    return count(_Shapes(node.inputs), _shape(node.outputs[0]), options)


def operator_macs(
    name: str, given: Sequence[Any], options: Mapping[str, Any], results: Any
) -> int:
    """The multiply-accumulates of a call of the runtime's operator; 0 if not counted.

    Attention is made of products there, and counts as these.
    """
    count = _OPERATORS.get(name)
    if count is None:
        return 0
    first = results[0] if isinstance(results, tuple) else results
    shapes = [tuple(getattr(each, "shape", ())) for each in given]
    return count(shapes, tuple(first.shape), options)


class _Shapes(Sequence[Shape]):
    """The shapes of a node's inputs; an unknown one raises when a count reads it."""

    def __init__(self, values: Sequence[ir.Value | None]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> Shape: ...
    @overload
    def __getitem__(self, index: slice) -> list[Shape]: ...
    def __getitem__(self, index: int | slice) -> Shape | list[Shape]:
        if isinstance(index, slice):
            return [_shape(value) for value in self._values[index]]
        return _shape(self._values[index])


def _shape(value: ir.Value | None) -> Shape:
    if value is None:
        return ()
    dims = static_dims(value)
    if dims is None:
        raise Unknown
    return dims


_OPERATORS: dict[str, Macs] = {
    **macs_by_function(),
    "einsum_of": einsum,
    "rnn_sequence": recurrent_steps,
    "gru_sequence": recurrent_steps,
    "lstm_sequence": recurrent_steps,
}
"""The runtime's operators; most have the name of their rule."""
