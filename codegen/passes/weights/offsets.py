"""Read biases of relative positions from their tables, where an exporter folded that.

A window's attention adds a number for each head and each offset between two places:
`table[index]`, (places, places, heads). Where an exporter folded it, the parameter has
a number for each pair of places, and training would make equal offsets differ.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.weights.unfold import instead
from burnish.codegen.scopes import scope_of, write_scope
from burnish.codegen.weights import constants, origin

_NAMES = {
    True: ("relative_position_bias_table", "relative_position_index"),
    False: ("attention_biases", "attention_bias_idxs"),
}
"""What Swin and MaxViT call the two; what LeViT does, whose offsets have no sign."""
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
        table, index, signed = found
        dims = tuple(tensor.shape.numpy())
        how = functools.partial(_bias, index=index, signed=signed, dims=dims)
        held = origin.replaced(tensor, ir.tensor(table, dtype=tensor.dtype), how)
        scope = scope_of(users[0])
        path = "".join(f"{level.name}." for level in scope)
        like, places = (ir.Value(name=f"{path}{each}") for each in _NAMES[signed])
        weight = g.initializer(model, like, g.unwrap(held), trains=True)
        constants.mark_parameter(weight)
        read = g.initializer(model, places, ir.tensor(index), trains=False)
        axis = ir.AttrInt64("axis", 0 if signed else 1)
        made = [ir.Node("", "Gather", [weight, read], [axis])]
        if signed:
            heads = [ir.AttrInt64s("perm", [2, 0, 1])]
            made.append(ir.Node("", "Transpose", made[0].outputs, heads))
        if len(dims) > 3:
            axes = range(len(dims) - 3)
            made += g.view_nodes("Unsqueeze", made[-1].outputs[0], axes)
        for node in made:
            node.name = value.name
            write_scope(node, scope)
        instead(value, *made, before=users[0])
        account.did("bias that depends on offsets alone", value.name or "")
        changed = True
    return changed


class _Offsets(NamedTuple):
    """A bias as a table, (offsets, heads) if signed, else (heads, offsets).

    offsets (places, places): the number of the offset of each pair of places.
    """

    table: np.ndarray
    offsets: np.ndarray
    signed: bool


def _table(tensor: ir.TensorProtocol) -> _Offsets | None:
    """The table of a bias (heads, places, places); None where it has none.

    Places are those of a window, row by row. Most offsets have numbers of their own,
    which those of a mask have not: not even from the first place, which is looked at
    before all windows are tried.
    """
    *lead, places, others = (0, 0, *tensor.shape.numpy())
    if len(lead) < 3 or places != others or places < _FEWEST:
        return None
    if any(size != 1 for size in lead[2:-1]) or not lead[-1]:
        return None
    bias = tensor.numpy().reshape(-1, places, places)
    diagonal = np.diagonal(bias, axis1=1, axis2=2)
    if (diagonal != diagonal[:, :1]).any() or not _are_varied(bias[:, 0].T):
        return None
    for index, signed in _indices(places):
        first = np.unique(index, return_index=True)[1]
        rows = bias.reshape(len(bias), -1)[:, first].T
        table = np.ascontiguousarray(rows if signed else rows.T)
        if np.array_equal(_bias(table, index, signed, bias.shape), bias):
            return _Offsets(table, index, signed) if _are_varied(rows) else None
    return None


def _are_varied(rows: np.ndarray) -> bool:
    return 2 * len(np.unique(rows, axis=0)) > len(rows)


def _bias(
    table: np.ndarray, index: np.ndarray, signed: bool, dims: tuple[int, ...]
) -> np.ndarray:
    return (table.T if signed else table)[:, index].reshape(dims)


def _indices(places: int) -> Iterator[tuple[np.ndarray, bool]]:
    """The offset of each pair of places, for every window of so many places.

    Without a sign and with one; those of fewer offsets come first.
    """
    heights = [h for h in range(1, places + 1) if places % h == 0]
    heights.sort(key=lambda h: (2 * h - 1) * (2 * places // h - 1))
    for signed in (False, True):
        for height in heights:
            width = places // height
            row, column = np.divmod(np.arange(places), width)
            down, along = row[:, None] - row, column[:, None] - column
            if signed:
                down, along = down + height - 1, along + width - 1
                yield down * (2 * width - 1) + along, signed
            else:
                yield abs(down) * width + abs(along), signed
