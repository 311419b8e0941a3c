"""Read biases of relative positions from their tables, where an exporter folded that.

A window's attention adds a number for each head and each offset between two places:
`table[index]`, (places, places, heads). Where an exporter folded it, the parameter has
a number for each pair of places, and training would make equal offsets differ.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.weights.unfold import instead
from burnish.codegen.scopes import scope_of, write_scope
from burnish.codegen.weights import constants, origin

_NAMES = "relative_position_bias_table", "relative_position_index"
"""What Swin's and MaxViT's authors call the two."""
_SUMS = frozenset(("Add", "Attention"))
_FEWEST = 4
"""Of fewer places hardly any two pairs have one offset."""


def unfold_offsets(model: ir.Model, account: Account) -> bool:
    """Replace biases that depend on offsets alone by rows of a table of offsets."""
    changed = False
    for value in list(model.graph.initializers.values()):
        users = [user for user, _ in value.uses()]
        added = bool(users) and all(user.op_type in _SUMS for user in users)
        if not added or value.is_graph_output() or not constants.trains(value):
            continue
        tensor = g.unwrap(value.const_value)
        found = _table(tensor)
        if found is None:
            continue
        table, index = found
        dims = tensor.shape.numpy()
        how = functools.partial(_bias, index=index, dims=dims)
        held = origin.replaced(tensor, ir.tensor(table, dtype=tensor.dtype), how)
        scope = scope_of(users[0])
        path = "".join(f"{level.name}." for level in scope)
        like, places = (ir.Value(name=f"{path}{each}") for each in _NAMES)
        weight = g.initializer(model, like, g.unwrap(held), trains=True)
        constants.mark_parameter(weight)
        read = g.initializer(model, places, ir.tensor(index), trains=False)
        rows = ir.Node("", "Gather", [weight, read])
        heads = [ir.AttrInt64s("perm", [2, 0, 1])]
        made = [rows, ir.Node("", "Transpose", rows.outputs, heads)]
        if len(dims) > 3:
            axes = g.constant_node(np.arange(len(dims) - 3))
            inputs = [made[-1].outputs[0], axes.outputs[0]]
            made += [axes, ir.Node("", "Unsqueeze", inputs)]
        for node in made:
            node.name = value.name
            write_scope(node, scope)
        instead(value, *made, before=users[0])
        account.did("bias that depends on offsets alone", value.name or "")
        changed = True
    return changed


def _table(tensor: ir.TensorProtocol) -> tuple[np.ndarray, np.ndarray] | None:
    """The table (offsets, heads) and the index (places, places) of a bias, if any.

    Places are those of a window, row by row. Most offsets have numbers of their own,
    which those of a mask have not.
    """
    *lead, places, others = (0, 0, *tensor.shape.numpy())
    if len(lead) < 3 or places != others or places < _FEWEST:
        return None
    if any(size != 1 for size in lead[2:-1]) or not lead[-1]:
        return None
    bias = tensor.numpy().reshape(-1, places, places)
    diagonal = np.diagonal(bias, axis1=1, axis2=2)
    if (diagonal != diagonal[:, :1]).any():
        return None
    for index in _indices(places):
        first = np.unique(index, return_index=True)[1]
        table = np.ascontiguousarray(bias.reshape(len(bias), -1)[:, first].T)
        if np.array_equal(_bias(table, index, bias.shape), bias):
            varied = 2 * len(np.unique(table, axis=0)) > len(table)
            return (table, index) if varied else None
    return None


def _bias(table: np.ndarray, index: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    return table[index].transpose(2, 0, 1).reshape(dims)


def _indices(places: int) -> Iterator[np.ndarray]:
    """The offset of each pair of places, for every window of so many places."""
    heights = [h for h in range(1, places + 1) if places % h == 0]
    for height in sorted(heights, key=lambda h: (2 * h - 1) * (2 * places // h - 1)):
        width = places // height
        row, column = np.divmod(np.arange(places), width)
        down = row[:, None] - row + height - 1
        along = column[:, None] - column + width - 1
        yield down * (2 * width - 1) + along
