"""Restore the author's weights where an exporter folded operators into them.

torch's newer exporter writes beside a constant what it was made of ("folded_from") and
calls it by the function that made it: `exp`, folded from `logit_scale`, is a parameter
behind an exponential. A mere copy of a parameter gets the parameter's name again, and
so does a layer's weight that was transposed for a product and has a counted name.
Rows that were taken from an embedding (at 0, 1, 2, ...) are taken from it again, and
the transpose and the squared norms of a codebook are computed from the codebook.
"""

from __future__ import annotations

import ast
import functools
import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.names import authorship
from burnish.codegen.passes import graph as g
from burnish.codegen.program import Level
from burnish.codegen.scopes import scope_of, write_scope
from burnish.codegen.weights import constants, origin

_COUNT = re.compile(r"_\d+$")
_COPIES = frozenset(("alias", "clone", "contiguous", "detach", "expand", "to"))
_COPIES |= {"permute", "repeat", "reshape", "squeeze", "transpose", "unsqueeze", "view"}
_ROWS = "embedding"
#: Functions of one number: what ONNX calls them, what undoes them, what they do.
_CURVES: dict[str, tuple[str, origin.How, origin.How]] = {
    "exp": ("Exp", np.log, np.exp),
    "neg": ("Neg", np.negative, np.negative),
    "sigmoid": (
        "Sigmoid",
        lambda y: np.log(y) - np.log1p(-y),
        lambda x: 1 / (1 + np.exp(-x)),
    ),
    "tanh": ("Tanh", np.arctanh, np.tanh),
}


def unfold_weights(model: ir.Model, account: Account) -> bool:
    """Replace constants that were computed from one parameter by that parameter."""
    changed = False
    named: dict[str, ir.Value] = {}
    for value in list(model.graph.initializers.values()):
        function = _COUNT.sub("", value.name or "")
        origins = value.metadata_props.pop(constants.FOLDED_FROM, "[]")
        made_of = _parameter(origins, function == _ROWS)
        if made_of is None or constants.is_marked(value) or value.const_value is None:
            continue
        if made_of in named and _is_copy(value, named[made_of]):
            ir.convenience.replace_all_uses_with(value, named[made_of])
            kept = named[made_of].const_value
            origin.replaced(value.const_value, kept, np.array)
            account.did("copy of a parameter", made_of)
            changed = True
        if made_of in model.graph.initializers:
            if _recomputed(model, value, model.graph.initializers[made_of]):
                account.did("constant that a parameter of the file gives", made_of)
                changed = True
            continue
        counted = authorship.is_exporters(value.name or "")
        layers = counted and made_of.endswith(".weight")
        if function == _ROWS and made_of.endswith(".weight"):
            if not _read_again(model, value, made_of):
                continue
        elif function in _COPIES or layers:
            value.name = value.const_value.name = made_of
            constants.mark_parameter(value)
            constants.mark_copy(value)
            named[made_of] = value
        elif function not in _CURVES or not _unfolded(model, value, made_of, function):
            continue
        account.did("parameter that was computed with", made_of)
        changed = True
    return changed


def _is_copy(value: ir.Value, other: ir.Value) -> bool:
    """Whether two constants are one, as those of a module that is called again."""
    one, two = value.const_value, other.const_value
    if one is None or two is None or value.is_graph_output():
        return False
    alike = one.dtype == two.dtype and one.shape == two.shape
    return alike and one.tobytes() == two.tobytes()


@functools.lru_cache
def _parameter(origins: str, rows: bool) -> str | None:
    """The one parameter among the names.

    rows: it is an embedding's weight, and the places to read may be a buffer.
    """
    try:
        names = ast.literal_eval(origins)
    except (SyntaxError, ValueError):
        return None
    sources = [str(name) for name in names if isinstance(name, str)]
    dotted = [name for name in sources if "." in name]  # others may be of nodes
    layers = [name for name in dotted if name.endswith(".weight")]
    dotted = dotted if len(layers) != 1 or not rows else layers
    name = sources[0] if len(sources) == 1 else dotted[0] if len(dotted) == 1 else ""
    named = name and not authorship.is_exporters(name) and not _COUNT.search(name)
    return name if named else None


def _unfolded(model: ir.Model, value: ir.Value, name: str, function: str) -> bool:
    """Compute the value from the parameter behind it; False where none gives it."""
    kind, undone, done = _CURVES[function]
    tensor = g.unwrap(value.const_value)
    if not tensor.dtype.is_floating_point() or value.is_graph_output():
        return False
    array = tensor.numpy()
    with np.errstate(all="ignore"):
        before = undone(array.astype(np.float64)).astype(array.dtype)
    if not np.isfinite(before.astype(np.float64)).all():
        return False
    kept = g.unwrap(
        origin.replaced(tensor, ir.tensor(before, dtype=tensor.dtype), done)
    )
    users = [user for user, _ in value.uses()]
    weight = g.initializer(model, ir.Value(name=name), kept, trains=True)
    constants.mark_parameter(weight)
    node = ir.Node("", kind, [weight], name=value.name)
    node.metadata_props.update(users[0].metadata_props if len(users) == 1 else {})
    instead(value, node, before=users[0])
    return True


def _recomputed(model: ir.Model, value: ir.Value, weight: ir.Value) -> bool:
    """Compute the value from a matrix that the file keeps: transposed, or row norms.

    The norms are squared. False where the value is neither, or its name is counted:
    `tie` recognizes those.
    """
    result, matrix, users = g.constant(value), g.constant(weight), list(value.uses())
    if result is None or matrix is None or len(matrix.shape) != 2 or not users:
        return False
    if authorship.is_exporters(value.name or "") or value.is_graph_output():
        return False
    array, rows = result.numpy(), matrix.numpy()
    if not result.dtype.is_floating_point() or array.dtype != rows.dtype:
        return False
    if array.size == rows.size > 1 and np.array_equal(array, rows.T):
        how: origin.How = np.transpose
        made = [ir.Node("", "Transpose", [weight], [ir.AttrInt64s("perm", [1, 0])])]
    elif array.shape in ((len(rows),), (len(rows), 1)) and _are_norms(array, rows):
        how = functools.partial(_norms, shape=array.shape)
        two, axes = map(g.constant_node, (np.array(2, rows.dtype), np.array([1])))
        squares = ir.Node("", "Pow", [weight, two.outputs[0]])
        inputs = [squares.outputs[0], axes.outputs[0]]
        keepdims = [ir.AttrInt64("keepdims", array.ndim - 1)]
        made = [two, axes, squares, ir.Node("", "ReduceSum", inputs, keepdims)]
    else:
        return False
    origin.replaced(result, matrix, how)
    for node in made:
        node.name = value.name
        node.metadata_props.update(users[0].node.metadata_props)
    instead(value, *made, before=users[0].node)
    return True


def _are_norms(array: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the numbers are the rows' sums of squares."""
    rounding = rows.shape[1] * float(np.finfo(rows.dtype).eps)
    wide = rows.astype(np.float64)
    return np.allclose(array, _norms(wide, array.shape), rtol=rounding, atol=0)


def _norms(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.square(rows).sum(1).reshape(shape)


def _read_again(model: ir.Model, value: ir.Value, name: str) -> bool:
    """Read the value as rows 0, 1, 2, ... of an embedding; False where it is none."""
    tensor, users = g.unwrap(value.const_value), [user for user, _ in value.uses()]
    module = name.removesuffix(".weight")
    if len(tensor.shape) < 2 or len(users) != 1 or value.is_graph_output():
        return False
    outer, path = scope_of(users[0]), module.split(".")
    inner = path[len(outer) :]
    if not inner or path[: len(outer)] != [level.name for level in outer]:
        return False
    dims = tensor.shape.numpy()
    table = ir.tensor(tensor.numpy().reshape(-1, dims[-1]), dtype=tensor.dtype)
    kept = g.unwrap(origin.replaced(tensor, table, lambda rows: rows.reshape(dims)))
    ids = ir.tensor(np.arange(int(np.prod(dims[:-1]))).reshape(dims[:-1]))
    weight = g.initializer(model, ir.Value(name=name), kept, trains=True)
    constants.mark_parameter(weight)
    places = g.initializer(model, ir.Value(name=f"{module}_ids"), ids, trains=False)
    node = ir.Node("", "Gather", [weight, places], name=value.name)
    write_scope(node, (*outer, *map(Level, inner)))
    instead(value, node, before=users[0])
    return True


def instead(value: ir.Value, *nodes: ir.Node, before: ir.Node) -> None:
    """Redirect all readers to the last node's result, placed before one of them.

    Where branches of an If read it too, it is placed before all nodes.
    """
    made = nodes[-1].outputs[0]
    if len({user.graph for user, _ in value.uses()}) > 1:
        before = g.unwrap(value.graph)[0]
    made.type, made.shape = value.type, value.shape
    ir.convenience.replace_all_uses_with(value, made)
    owner = g.owner(before)
    owner.insert_before(before, nodes)
    owner.sort()
