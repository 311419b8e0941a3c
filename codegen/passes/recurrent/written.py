"""Write a cell that runs through a sequence as an RNN, GRU or LSTM node.

The sequence is (T, N, I), the states are (N, H) each; T time, N batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.cells import Cell


@dataclass(frozen=True)
class Written:
    """The nodes, not in a graph yet; every h (T, N, H), and the last states (N, H)."""

    nodes: list[ir.Node]
    every: ir.Value
    ends: list[ir.Value]


def written(
    model: ir.Model,
    like: ir.Node,
    sequence: ir.Value,
    cell: Cell,
    starts: Sequence[ir.Value],
) -> Written:
    """The layer with these initial states, named after `like`."""
    first, second = (g.new_constant(model, "axes", [n]) for n in (0, 1))
    begins = [_axes_node("Unsqueeze", v, first, f"{like.name}_start") for v in starts]
    given = [*_weights(model, like, cell), None, *(b.outputs[0] for b in begins)]
    made = ir.node(
        cell.kind,
        [sequence, *given],
        _options(cell),
        num_outputs=1 + len(begins),
        name=like.name,
    )
    every = _axes_node("Squeeze", made.outputs[0], second, f"{like.name}_all")
    ends = [
        _axes_node("Squeeze", last, first, f"{like.name}_last")
        for last in made.outputs[1:]
    ]
    nodes = [*begins, made, every, *ends]
    assert sequence.shape is not None
    time, batch, _ = sequence.shape
    shapes = {
        made: [time, 1, batch, cell.size],
        every: [time, batch, cell.size],
        **{node: [1, batch, cell.size] for node in begins},
        **{node: [batch, cell.size] for node in ends},
    }
    for each in nodes:
        each.metadata_props.update(like.metadata_props)
        each.outputs[0].type = sequence.type
        each.outputs[0].shape = ir.Shape(shapes[each])
    for state in made.outputs[1:]:
        state.type = sequence.type
        state.shape = ir.Shape([1, batch, cell.size])
    return Written(nodes, every.outputs[0], [end.outputs[0] for end in ends])


def _axes_node(kind: str, value: ir.Value, axes: ir.Value, name: str) -> ir.Node:
    """Squeeze or Unsqueeze with its axes as an input, which the file's may not have."""
    return ir.Node("", kind, [value, axes], name=name, version=13)


def _weights(model: ir.Model, like: ir.Node, cell: Cell) -> list[ir.Value | None]:
    def weight(name: str, array: np.ndarray | None) -> ir.Value | None:
        if array is None:
            return None
        value = ir.Value(name=f"{like.name}/{name}__0")
        tensor = ir.tensor(np.ascontiguousarray(array))
        return g.initializer(model, value, tensor, trains=True)

    return [weight("W", cell.W), weight("R", cell.R), weight("B", cell.B)]


def _options(cell: Cell) -> dict[str, int | list[str]]:
    options: dict[str, int | list[str]] = {"hidden_size": cell.size}
    if cell.linear_before_reset:
        options["linear_before_reset"] = 1
    if cell.activation != "Tanh":
        options["activations"] = [cell.activation]
    return options
