"""Constants of the graph that stand where a layer has its weights.

A model that was frozen has its weights as Constant nodes: in branches and bodies, or
everywhere. Beside weights that are initializers, Constants of the main graph are what
their author computes with.
"""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.weights import constants

_RECURRENT = frozenset((1, 2, 3))
_AFFINE = frozenset((1, 2))
_SLOTS = {
    "BatchNormalization": frozenset((1, 2, 3, 4)),
    "Conv": _AFFINE,
    "ConvTranspose": _AFFINE,
    "GRU": _RECURRENT,
    "Gemm": _AFFINE,
    "GroupNormalization": _AFFINE,
    "InstanceNormalization": _AFFINE,
    "LSTM": _RECURRENT,
    "LayerNormalization": _AFFINE,
    "MatMul": frozenset((1,)),
    "PRelu": frozenset((1,)),
    "RMSNormalization": frozenset((1,)),
    "RNN": _RECURRENT,
}
_VIEWS = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))


def weights_among_constants(model: ir.Model) -> set[ir.Node]:
    """The Constant nodes that are weights of layers."""
    held = any(map(constants.trains, model.graph.initializers.values()))
    graphs = [g for g in model.graphs() if not (held and g is model.graph)]
    return {
        node
        for graph in graphs
        for node in graph
        if node.op_type == "Constant" and node.domain == "" and _is_weight(node)
    }


def _is_weight(node: ir.Node) -> bool:
    """Whether it holds floats, and every use is as a layer's weight."""
    value = node.attributes.get("value")
    if value is None or value.type != ir.AttributeType.TENSOR:
        return False
    tensor = value.as_tensor()
    if not tensor.dtype.is_floating_point() or len(tensor.shape) == 0:
        return False
    uses = list(node.outputs[0].uses())
    return bool(uses) and all(_fits(user, place, tensor) for user, place in uses)


def _fits(user: ir.Node, place: int, tensor: ir.TensorProtocol) -> bool:
    if user.domain != "":
        return False
    if user.op_type in _VIEWS and place == 0:
        after = list(user.outputs[0].uses())
        return bool(after) and all(_fits(u, p, tensor) for u, p in after)
    if user.op_type == "Add":
        return len(tensor.shape) == 1 and _adds_to_product(user, place, tensor)
    if user.op_type == "MatMul" and len(tensor.shape) != 2:
        return False
    return place in _SLOTS.get(user.op_type, ())


def _adds_to_product(node: ir.Node, place: int, tensor: ir.TensorProtocol) -> bool:
    """Whether it is the bias of a product with a constant matrix of as many columns."""
    other = node.inputs[1 - place]
    product = None if other is None else other.producer()
    if product is None or product.op_type != "MatMul":
        return False
    value = product.inputs[1]
    while value is not None and value.producer() is not None:
        maker = value.producer()
        if maker is None or maker.op_type not in _VIEWS:
            break
        value = maker.inputs[0]
    matrix = None if value is None else ir.convenience.get_const_tensor(value)
    return matrix is not None and tensor.shape[0] in tuple(matrix.shape.numpy())
