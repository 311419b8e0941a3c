"""Mark initializers that an exporter folded from constants alone: no weights.

torch's newer exporter writes beside a constant what it was made of ("folded_from"): of
constants that it counts, and of nodes that are called by their function. Where a name
may be an author's, the numbers decide: sines and cosines of the same angles never
train.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.weights import constants

_FEW = 8
"""Fewer numbers are sines and cosines by chance."""
_FROM = "pkg.onnxscript.optimizer.folded_from"
_FUNCTIONS = (
    "_to_copy abs add alias arange cat ceil clamp clone cos cumsum detach div exp"
    " expand eye floor full index lift_fresh_copy linspace log mul neg ones permute"
    " pow reciprocal repeat reshape round rsqrt scalar_tensor select sin slice sqrt"
    " squeeze stack sub t tanh transpose tril triu unsqueeze view where zeros"
)
_OF_NODES = re.compile(
    r"val_\d+|(c_)?lifted_tensor_\d+"
    rf"|({_FUNCTIONS.replace(' ', '|')})(_default)?(_\d+)?"
)


def mark_folded(model: ir.Model, account: Account) -> bool:
    """Mark initializers that are constants."""
    changed = False
    for value in model.graph.initializers.values():
        origins = value.metadata_props.get(_FROM)
        if (
            origins is None
            or constants.is_marked(value)
            or not _is_constant(value, origins)
        ):
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
    tensor = value.const_value
    return tensor is not None and _are_angles(tensor)


def _are_angles(tensor: ir.TensorProtocol) -> bool:
    """Whether the last axis holds sines and then cosines, or these first."""
    few = len(tensor.shape) < 2 or tensor.size < _FEW
    if few or not tensor.dtype.is_floating_point():
        return False
    array = tensor.numpy().astype(np.float64)
    if array.shape[-1] % 2:
        return False
    one, two = np.split(array, 2, axis=-1)
    return bool(np.allclose(one**2 + two**2, 1, atol=1e-5) and np.ptp(one) > 0)
