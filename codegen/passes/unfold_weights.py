"""Weights that an exporter computed with go back to what their author kept.

torch's newer exporter writes beside a constant what it was made of ("folded_from") and
calls it by the function that made it: `exp`, folded from `logit_scale`, is a parameter
behind an exponential. What only copies a parameter has the parameter's name again, and
so has a layer's weight that was turned, as products have it, and has a number now.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from burnish.codegen import constants
from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g

_FROM = "pkg.onnxscript.optimizer.folded_from"
_COUNT = re.compile(r"_\d+$")
_COPIES = frozenset(("alias", "clone", "contiguous", "detach", "expand", "to"))
_COPIES |= {"permute", "reshape", "squeeze", "transpose", "unsqueeze", "view"}
#: Functions of one number, what undoes them, and what ONNX calls them.
_CURVES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "exp": ("Exp", np.log),
    "neg": ("Neg", np.negative),
    "sigmoid": ("Sigmoid", lambda y: np.log(y) - np.log1p(-y)),
    "tanh": ("Tanh", np.arctanh),
}


def unfold_weights(model: ir.Model, account: Account) -> bool:
    """Put parameters in the place of constants that were made of one alone."""
    changed = False
    for value in list(model.graph.initializers.values()):
        made_of = _parameter(model, value.metadata_props.pop(_FROM, "[]"))
        function = _COUNT.sub("", value.name or "")
        if made_of is None or value.const_value is None:
            continue
        layers = constants.is_counted(value.name or "") and made_of.endswith(".weight")
        if function in _COPIES or layers:
            value.name = value.const_value.name = made_of
            constants.mark_parameter(value)
        elif function not in _CURVES or not _unfolded(model, value, made_of, function):
            continue
        account.did("parameter that was computed with", made_of)
        changed = True
    return changed


def _parameter(model: ir.Model, told: str) -> str | None:
    """The one parameter among the names, where it is not in the graph any more."""
    try:
        names = ast.literal_eval(told)
    except (SyntaxError, ValueError):
        return None
    sources = [str(name) for name in names if isinstance(name, str)]
    dotted = [name for name in sources if "." in name]  # others may be of nodes
    name = sources[0] if len(sources) == 1 else dotted[0] if len(dotted) == 1 else ""
    named = name and not constants.is_counted(name) and not _COUNT.search(name)
    return name if named and name not in model.graph.initializers else None


def _unfolded(model: ir.Model, value: ir.Value, name: str, function: str) -> bool:
    """Compute the value from the parameter behind it; False where none gives it."""
    kind, undone = _CURVES[function]
    tensor = value.const_value
    assert tensor is not None
    if not tensor.dtype.is_floating_point() or value.is_graph_output():
        return False
    array = tensor.numpy()
    with np.errstate(all="ignore"):
        before = undone(array.astype(np.float64)).astype(array.dtype)
    if not np.isfinite(before.astype(np.float64)).all():
        return False
    kept = ir.tensor(before, dtype=tensor.dtype)
    users = [user for user, _ in value.uses()]
    weight = g.initializer(model, ir.Value(name=name), kept, trains=True)
    constants.mark_parameter(weight)
    node = ir.Node("", kind, [weight], name=value.name)
    node.metadata_props.update(users[0].metadata_props if len(users) == 1 else {})
    made = node.outputs[0]
    made.type, made.shape = value.type, value.shape
    ir.convenience.replace_all_uses_with(value, made)
    owner = g.owner(users[0])
    owner.insert_before(users[0], node)
    owner.sort()
    return True
