"""Constant folding, except for results that are random, large or expensive.

Changes of layout of one large weight (Transpose, Reshape, ...) are folded lazily: the
array is made on demand, and dropped again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from burnish._files.budget import Budget
from burnish.codegen.account import Account
from burnish.codegen.errors import ReadError
from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.evaluate import evaluate, is_rounding
from burnish.codegen.symbolic.sizes import MOST_DIMS
from burnish.codegen.weights import constants, origin

#: Bytes; a constant that a person would not want to see computed at import is larger.
LIMIT = 1 << 20

_DONE = "node computed now"
#: Kept although constant: quantized weights stay quantized, Constant is one already.
_KEPT = frozenset(("Constant", "DequantizeLinear", "QuantizeLinear", "If"))
#: Left to the running model too: their results are random, or their work is not
#: bounded by what they read and make.
_LEFT = _KEPT | having(Trait.UNBOUNDED | Trait.RANDOM)
#: Operators on one weight that only move or convert its elements.
_LAYOUT = having(Trait.VIEW) | {"Cast"}
#: Operators that take a weight apart; the parts train as the whole did.
_PARTS = frozenset(("Slice", "Split"))
#: Operators whose result may follow from the type or shape of an input.
_STATIC = frozenset(("CastLike", "Shape", "Size"))
_READS = having(Trait.REPARAMETRIZATION)


def fold_constants(model: ir.Model, account: Account) -> bool:
    """Replace nodes of known result by initializers, in bodies too."""
    changed = False
    for node in g.all_nodes(model):
        inputs = list(map(g.constant, node.inputs))
        if not (node.op_type in _STATIC or _is_known(node, inputs)):
            continue
        if node.graph is None or not _may_fold(node):
            continue
        trains = any(map(constants.trains, node.inputs))
        folded = results(model, node, inputs, account)
        if folded is None:
            continue
        _keep_name(node, folded[0])
        for output, tensor in zip(node.outputs, folded, strict=True):
            if output.uses():
                value = g.initializer(model, output, tensor, trains)
                ir.convenience.replace_all_uses_with(output, value)
        node.graph.remove(node, safe=True)
        account.did(_DONE, g.label(node))
        changed = True
    return changed


def _typed(array: np.ndarray, dtype: ir.DataType | None) -> ir.TensorProtocol:
    """The array as a tensor of the inferred type.

    Inference by an old opset calls what DequantizeLinear gives float32: halves stay.
    """
    if dtype is None or (dtype == ir.DataType.FLOAT and array.dtype == np.float16):
        return ir.tensor(array)
    return ir.tensor(array, dtype=dtype)


def _keep_name(node: ir.Node, result: ir.TensorProtocol) -> None:
    """Keep the author's name of a weight whose layout is changed."""
    if node.op_type not in {*_LAYOUT, "Expand"} or node.inputs[0] is None:
        return
    weight, output = node.inputs[0], node.outputs[0]
    tensor = weight.const_value if constants.is_parameter(weight) else None
    alone = constants.trains(weight) and len(weight.uses()) == 1
    if alone and tensor is not None and tensor.size == result.size:
        output.name = weight.name
        constants.mark_parameter(output)


def can_run(node: ir.Node) -> bool:
    """Whether a node's results can be known now."""
    return (
        node.domain == ""
        and node.op_type not in _LEFT
        and next(g.bodies(node), None) is None
    )


def _may_fold(node: ir.Node) -> bool:
    rounds = is_rounding(node) and not constants.trains(node.inputs[0])
    return (
        (can_run(node) or rounds)
        and not any(output.is_graph_output() for output in node.outputs)
        and (node.op_type in _PARTS or not any(map(_is_shared_weight, node.inputs)))
        and not (node.op_type in _READS and constants.trains(node.inputs[0]))
        and not (node.op_type == "Neg" and _is_authors(node.inputs[0]))
        and not (node.op_type == "Expand" and _repeats_authors(node))
    )


def _is_authors(value: ir.Value | None) -> bool:
    """A parameter with a name of its own, behind which a sign stays."""
    return (
        value is not None
        and value.is_initializer()
        and constants.trains(value)
        and constants.is_parameter(value)
    )


def _repeats_authors(node: ir.Node) -> bool:
    """Whether folding would repeat rows of a parameter, which then train apart."""
    weight, dims = node.inputs[0], g.static_dims(node.outputs[0])
    tensor = g.constant(weight)
    alone = tensor is not None and dims is not None and tensor.size == g.elements(dims)
    return _is_authors(weight) and not alone


def _is_shared_weight(value: ir.Value | None) -> bool:
    """A weight that others read too stays one; a folded copy would train apart."""
    if value is None or not constants.trains(value):
        return False
    shape = value.const_value.shape if value.const_value is not None else ()
    return len(shape) > 0 and len(value.uses()) > 1


def _is_known(node: ir.Node, inputs: list[ir.TensorProtocol | None]) -> bool:
    """Whether all inputs are known: None, where they are not left out, is not."""
    pairs = zip(node.inputs, inputs, strict=True)
    return all(value is None or tensor is not None for value, tensor in pairs)


def _static(node: ir.Node) -> list[ir.TensorProtocol] | None:
    """Shape and Size of a value whose shape is numbers; a number like another."""
    if node.op_type not in _STATIC:
        return None
    if node.op_type == "CastLike":
        number, dtype = g.constant(node.inputs[0]), node.outputs[0].dtype
        if number is None or number.size != 1 or dtype is None:
            return None
        return [ir.tensor(number.numpy().astype(dtype.numpy()), dtype=dtype)]
    dims = g.static_dims(node.inputs[0])
    if dims is None:
        return None
    if node.op_type == "Size":
        return [ir.tensor(np.array(g.elements(dims), np.int64))]
    start, end = node.attributes.get_int("start"), node.attributes.get_int("end")
    return [ir.tensor(np.array(dims[start:end], np.int64))]


def results(
    model: ir.Model,
    node: ir.Node,
    inputs: list[ir.TensorProtocol | None],
    account: Account,
) -> list[ir.TensorProtocol] | None:
    """The node's outputs for known inputs (None: unknown, or left out)."""
    static = _static(node)
    if static is not None:
        return static
    if not _is_known(node, inputs):
        return None
    large = sum(t.nbytes for t in inputs if t is not None) > LIMIT
    if large or _result_bytes(node, inputs) > LIMIT:
        return _lazily(model, node, inputs, account)
    try:
        arrays = evaluate(node, g.version(model, node), [_array(t) for t in inputs])
    except Exception as error:  # the evaluator raises many kinds; the node just stays
        account.left(_DONE, g.label(node), f"{node.op_type}: {type(error).__name__}")
        return None
    if not all(isinstance(array, np.ndarray) for array in arrays):
        return None
    size = sum(array.nbytes for array in arrays)
    budget: Budget | None = model.meta.get(constants.BUDGET)
    if size > LIMIT or not (budget is None or budget.fits(size)):
        account.left(_DONE, g.label(node), f"{node.op_type}, too large")
        return None
    if budget is not None:
        budget.take(size)
    made = [
        _typed(array, output.dtype)
        for array, output in zip(arrays, node.outputs, strict=True)
    ]
    if not any(map(constants.trains, node.inputs)):
        return made
    version = g.version(model, node)
    return [
        origin.computed(one, _maker(node, version, inputs, one.dtype, place))
        for place, one in enumerate(made)
    ]


def _array(tensor: ir.TensorProtocol | None) -> np.ndarray | None:
    return None if tensor is None else tensor.numpy()


def _lazily(
    model: ir.Model,
    node: ir.Node,
    inputs: list[ir.TensorProtocol | None],
    account: Account,
) -> list[ir.TensorProtocol] | None:
    """A large weight in another layout, as a tensor that is made on demand."""
    weight, output = node.inputs[0], node.outputs[0]
    dims = g.static_dims(output)
    alone = weight is not None and len(weight.uses()) == 1
    if node.op_type not in _LAYOUT or dims is None or output.dtype is None or not alone:
        account.left(_DONE, g.label(node), f"{node.op_type}, too large")
        return None
    dtype = output.dtype
    make = _maker(node, g.version(model, node), inputs, dtype)
    return [ir.LazyTensor(make, dtype, ir.Shape(dims), name=output.name)]


def _maker(
    node: ir.Node,
    version: int,
    inputs: list[ir.TensorProtocol | None],
    dtype: ir.DataType,
    place: int = 0,
) -> Callable[[], ir.TensorProtocol]:
    twin, name = _detached(node), g.label(node)

    def make() -> ir.TensorProtocol:
        arrays = [_array(t) for t in inputs]
        try:
            made = evaluate(twin, version, arrays)[place]
        except Exception as error:  # the evaluator raises many kinds
            raise ReadError(
                f"node {name!r} ({twin.op_type}): expected inputs that fit each other, "
                f"got an error from ONNX: {error}; export the model again"
            ) from error
        return ir.tensor(np.asarray(made), dtype=dtype)

    return make


def _detached(node: ir.Node) -> ir.Node:
    """The same operator, outside of any graph."""
    inputs = [
        None if v is None else ir.Value(name=f"i{i}") for i, v in enumerate(node.inputs)
    ]
    kept, count = list(node.attributes.values()), len(node.outputs)
    return ir.Node("", node.op_type, inputs, kept, num_outputs=count)


def _result_bytes(node: ir.Node, inputs: list[ir.TensorProtocol | None]) -> int:
    """The result's size, with a bound for operators that enlarge their input."""
    output = node.outputs[0]
    item = (
        output.dtype.itemsize
        if output.dtype and output.dtype != ir.DataType.STRING
        else 8
    )
    dims = g.static_dims(output)
    if dims is not None:
        return int(g.elements(dims) * item)
    grow = _GROWS.get(node.op_type, _all_pairs)
    try:
        return int(grow([None if t is None else t.numpy() for t in inputs]) * item)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return LIMIT + 1


def _range(inputs: list[np.ndarray | None]) -> float:
    start, limit, delta = (float(i) for i in inputs if i is not None)
    return max(0.0, (limit - start) / delta)


def _product(values: object) -> float:
    return float(np.prod(np.maximum(np.asarray(values, np.float64), 1)))


def _all_pairs(inputs: list[np.ndarray | None]) -> float:
    """The most elements that broadcasting, gathering and products make."""
    return _product([i.size for i in inputs if i is not None])


def _never(_inputs: list[np.ndarray | None]) -> float:
    return float(LIMIT + 1)


_GROWS: dict[str, Callable[[list[np.ndarray | None]], float]] = {
    "ConstantOfShape": lambda i: float(np.prod(np.asarray(i[0], np.float64))),
    "Expand": lambda i: np.asarray(i[0]).size * _product(i[1]),
    "Tile": lambda i: np.asarray(i[0]).size * _product(i[1]),
    "Range": _range,
    "OneHot": lambda i: np.asarray(i[0]).size * float(np.max(np.asarray(i[1]))),
    "Unsqueeze": lambda i: LIMIT + 1.0 if np.asarray(i[1:]).size > MOST_DIMS else 0.0,
    **dict.fromkeys(("Pad", "Resize", "Upsample", "MelWeightMatrix"), _never),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _never),
}
