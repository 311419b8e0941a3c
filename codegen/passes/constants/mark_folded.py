"""Mark initializers that an exporter folded from constants alone: no weights.

torch's newer exporter writes beside a constant what it was made of ("folded_from"): of
constants that it counts, and of nodes that are called by their function. Where a name
may be an author's, the numbers decide: sines and cosines of the same angles never
train. A table of positions that has an author's name is a buffer of the author's.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.names import authorship
from burnish.codegen.weights import constants

_FEW = 8
"""Fewer numbers are sines and cosines by chance."""
_FUNCTIONS = (
    "_to_copy abs add alias arange cat ceil clamp clone cos cumsum detach div exp"
    " expand eye fill floor full index lift_fresh_copy linspace log mul neg ones"
    " permute pow reciprocal repeat reshape round rsqrt scalar_tensor select shape sin"
    " slice sqrt squeeze stack sub t tanh transpose tril triu unsqueeze value_0 view"
    " where zeros"
)
_OF_NODES = re.compile(
    r"val_\d+|(c_|.+\.)?lifted_tensor_\d+"
    rf"|({_FUNCTIONS.replace(' ', '|')})(_default)?(_\d+)?"
)


def mark_folded(model: ir.Model, account: Account) -> bool:
    """Mark initializers that are constants."""
    changed = False
    for value in model.graph.initializers.values():
        may_train = constants.trains(value) and not constants.is_buffer(value)
        if may_train and _are_angles(value.const_value):
            keeps = authorship.is_path(value.name or "")
            (constants.mark_buffer if keeps else constants.mark)(value)
            account.did("table of sines and cosines", value.name or "")
            changed = True
        origins = value.metadata_props.get(constants.FOLDED_FROM)
        if origins is None or constants.is_marked(value):
            continue
        if not _is_constant(value, origins):
            continue
        constants.mark(value)
        account.did("number that was computed of numbers", value.name or "")
        changed = True
    return changed


def _is_constant(value: ir.Value, origins: str) -> bool:
    try:
        names = ast.literal_eval(origins)
    except (SyntaxError, ValueError):
        return False
    if all(_OF_NODES.fullmatch(str(name)) for name in names):
        return True
    return _are_angles(value.const_value)


def _are_angles(tensor: ir.TensorProtocol | None) -> bool:
    """Whether the last axis holds sines and cosines of the same angles.

    All sines first, or the two in turn; images have both for rows, then for columns.
    Rows of zeros are those of padding, or of a token without a place.
    """
    if tensor is None or not tensor.dtype.is_floating_point():
        return False
    *rest, size = tensor.shape.numpy() or (0,)
    if not rest or size % 2 or not size or tensor.size < _FEW:
        return False
    rows = tensor.numpy().reshape(-1, size)
    ways = {way for way in (1, 2, size // 2) if size % (2 * way) == 0}
    return any(
        _are_on_circles(rows[:_FEW], way) and _are_on_circles(rows, way) for way in ways
    )


def _are_on_circles(rows: np.ndarray, pairs: int) -> bool:
    """Whether the squares of so many pairs of parts of each row add up to 1."""
    rows = rows[rows.any(axis=1)].astype(np.float64)
    if len(rows) < 2 or np.ptp(rows[:, 0]) == 0:
        return False
    squares = (rows.reshape(len(rows), pairs, 2, -1) ** 2).sum(2)
    return bool(np.allclose(squares, 1, atol=1e-5))
