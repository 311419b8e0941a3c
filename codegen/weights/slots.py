"""Constants of the graph that stand where a layer has its weights.

A model that was frozen has its weights as Constant nodes: in branches and bodies, or
everywhere. Beside weights that are initializers, Constants of the main graph are what
their author computes with.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from burnish.codegen.weights import constants

Shape = tuple[int, ...]

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
_CHANNELS = frozenset(("Conv", "ConvTranspose"))
_PER_CHANNEL = frozenset(("Add", "Mul"))
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
    shape = tuple(tensor.shape.numpy())
    return bool(uses) and all(_fits(user, place, shape) for user, place in uses)


def _fits(user: ir.Node, place: int, shape: Shape | None) -> bool:
    """Whether a constant is a layer's weight there; None: its shape is not known."""
    if user.domain != "":
        return False
    if user.op_type in _VIEWS and place == 0:
        after = list(user.outputs[0].uses())
        viewed = _viewed(user, shape)
        return bool(after) and all(_fits(u, p, viewed) for u, p in after)
    if user.op_type in _PER_CHANNEL:
        return shape is not None and _is_per_channel(user, place, shape)
    if user.op_type == "MatMul" and (shape is None or len(shape) != 2):
        return False
    return place in _SLOTS.get(user.op_type, ())


def _viewed(node: ir.Node, shape: Shape | None) -> Shape | None:
    """The shape behind a view; None if it is not known."""
    if shape is None or node.op_type in ("Cast", "Identity"):
        return shape
    if node.op_type == "Transpose":
        axes = node.attributes.get_ints("perm") or range(len(shape))[::-1]
        return tuple(shape[axis] for axis in axes)
    sizes = (
        ir.convenience.get_const_tensor(node.inputs[-1]) if node.inputs[-1] else None
    )
    if node.op_type != "Reshape" or sizes is None:
        return None
    known = [int(size) for size in sizes.numpy().ravel()]
    rest = math.prod(shape) // max(1, abs(math.prod(known)))
    return tuple(rest if size == -1 else size for size in known)


def _is_per_channel(node: ir.Node, place: int, shape: Shape) -> bool:
    """Whether it is a bias or a scale of the channels of a layer with constant weights.

    Behind a product that is a bias (columns,); behind a convolution (C, 1, ...) or
    (1, C, 1, ...), and other such numbers may be between them.
    """
    layer = _maker(node.inputs[1 - place])
    if layer is not None and layer.op_type == "MatMul":
        matrix = _held(layer.inputs[1])
        return node.op_type == "Add" and matrix is not None and shape == matrix[-1:]
    while layer is not None and layer.op_type in _PER_CHANNEL:
        others = [_maker(v) for v in layer.inputs if v is not None and _held(v) is None]
        layer = others[0] if len(others) == 1 else None
    if layer is None or layer.op_type not in _CHANNELS:
        return False
    weight = _held(layer.inputs[1])
    if weight is None or (node.op_type == "Add" and len(layer.inputs) > 2):
        return False
    groups = layer.attributes.get_int("group", 1)
    count = weight[0] if layer.op_type == "Conv" else weight[1] * groups
    each = (count, *(1 for _ in weight[2:]))
    return shape in (each, (1, *each))


def _maker(value: ir.Value | None) -> ir.Node | None:
    maker = None if value is None else value.producer()
    return maker if maker is not None and maker.domain == "" else None


def _held(value: ir.Value | None) -> Shape | None:
    """The shape of a constant, behind views of it; None if it is none or not known."""
    maker = _maker(value)
    if maker is not None and maker.op_type in _VIEWS:
        return _viewed(maker, _held(maker.inputs[0]))
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tuple(tensor.shape.numpy())
