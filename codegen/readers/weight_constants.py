"""Find Constant nodes in weight positions of layers; they become parameters.

A model that was frozen has its weights as Constant nodes: in branches and bodies, or
everywhere. Beside weights that are initializers, a Constant that a product of the main
graph reads is a table of the author's. PyTorch writes buffers that are not saved as
Constants, filters of convolutions too, and the weights of scripted recurrent layers;
for norms without scale or bias it writes ones and zeros.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from burnish._files.budget import Budget
from burnish.codegen.names import authorship
from burnish.codegen.ops import Trait, having, weights_of
from burnish.codegen.symbolic import transfer
from burnish.codegen.weights import constants

Shape = tuple[int, ...]

_FILTERED = having(Trait.PRODUCT | Trait.CONVOLUTION)
"""Those that PyTorch's authors also call with tensors of their own."""
_CHANNELS = having(Trait.CONVOLUTION) | {"BatchNormalization"}
_NEUTRAL = {
    (f"{kind}Normalization", place): place % 2
    for kind in ("Batch", "Group", "Instance", "Layer")
    for place in (1, 2)
}
"""What a norm is given in a place where it has no weight."""
_PER_CHANNEL = frozenset(("Add", "Mul"))
_MOST_FILLED = 256 << 20  # bytes written of weights whose values the file only says
_VIEWS = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))


def weights_among_constants(model: ir.Model) -> set[ir.Node]:
    """The Constant nodes that are weights of layers."""
    also = None
    by_pytorch = False
    if _trained(model):
        by_pytorch = authorship.is_by_pytorch(model.producer_name)
        also = _FILTERED if by_pytorch else frozenset(("MatMul",))
    return {
        node
        for graph in model.graphs()
        for node in graph
        if node.op_type == "Constant"
        and node.domain == ""
        and _is_weight(node)
        and (also is None or graph is not model.graph or _is_of_layers(node, also))
        and not (by_pytorch and _is_neutral(node))
    }


def _is_neutral(node: ir.Node) -> bool:
    """Whether a Constant is what norms are given that have no scale, or no bias."""
    found = {_NEUTRAL.get((u.op_type, place)) for u, place in node.outputs[0].uses()}
    number = found.pop() if len(found) == 1 else None
    values = node.attributes["value"].as_tensor()
    return number is not None and bool((values.numpy() == number).all())


def _is_of_layers(node: ir.Node, others: frozenset[str]) -> bool:
    """Whether layers alone but these read a Constant, or views of it."""
    users = [user for user, _ in node.outputs[0].uses()]
    return all(
        (weights_of("", user.op_type) and user.op_type not in others)
        or (user.op_type in _VIEWS and _is_of_layers(user, others))
        for user in users
    )


def _trained(model: ir.Model) -> int:
    """How many initializers train."""
    return sum(map(constants.trains, model.graph.initializers.values()))


def store_filled(model: ir.Model, budget: Budget) -> None:
    """Make each ConstantOfShape in a weight's place an initializer.

    ONNX's light models have most of their weights so, to be small. A few beside other
    weights are what an author computes with. Where a file of this size may not ask for
    so much memory or disk, all stay as they are.
    """
    found = {}
    for node in model.graph:
        tensor = None if node.outputs[0].is_graph_output() else _filled(node)
        if tensor is not None and _all_fit(node, tuple(tensor.shape.numpy())):
            found[node] = tensor
    if len(found) < _trained(model):
        return
    sizes = [tensor.nbytes for tensor in found.values()]
    if sum(sizes) > _MOST_FILLED or not budget.fits(max(sizes, default=0)):
        return
    for node, tensor in found.items():
        old = node.outputs[0]
        value = ir.Value(
            name=old.name,
            shape=tensor.shape,
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        ir.convenience.replace_all_uses_with(old, value)
        model.graph.remove(node, safe=True)
        model.graph.register_initializer(value)


def _filled(node: ir.Node) -> ir.LazyTensor | None:
    """The tensor of a ConstantOfShape of floats; None if its shape is unknown."""
    if node.op_type != "ConstantOfShape" or node.domain != "" or not node.inputs[0]:
        return None
    sizes = ir.convenience.get_const_tensor(node.inputs[0])
    value = node.attributes.get("value")
    fill = ir.tensor(np.zeros(1, np.float32)) if value is None else value.as_tensor()
    if sizes is None or not fill.dtype.is_floating_point():
        return None
    shape = tuple(map(int, sizes.numpy()))
    if min(shape, default=0) < 0:
        return None
    return ir.LazyTensor(
        lambda: ir.tensor(np.full(shape, fill.numpy()), dtype=fill.dtype),
        fill.dtype,
        ir.Shape(shape),
    )


def _is_weight(node: ir.Node) -> bool:
    """Whether it holds floats, and its name or all its uses are those of a weight."""
    value = node.attributes.get("value")
    if value is None or value.type != ir.AttributeType.TENSOR:
        return False
    tensor: ir.TensorProtocol = value.value
    if not tensor.dtype.is_floating_point() or len(tensor.shape) == 0:
        return False
    if authorship.is_paddles_parameter(node.outputs[0].name or ""):
        return True
    return _all_fit(node, tuple(tensor.shape.numpy()))


def _all_fit(node: ir.Node, shape: Shape) -> bool:
    """Whether every use of a Constant is as a layer's weight."""
    uses = list(node.outputs[0].uses())
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
    return place in weights_of("", user.op_type)


def _viewed(node: ir.Node, shape: Shape | None) -> Shape | None:
    """The shape behind a view; None if it is not known."""
    if shape is None or node.op_type in ("Cast", "Identity"):
        return shape
    if node.op_type == "Transpose":
        order = node.attributes.get_ints("perm") or range(len(shape))[::-1]
        return tuple(shape[axis] for axis in order)
    if node.op_type == "Reshape":
        sizes = _integers(node.inputs[1])
        if sizes is None or 0 in sizes:
            return None
        rest = math.prod(shape) // abs(math.prod(sizes))
        return tuple(rest if size == -1 else size for size in sizes)
    axes = node.attributes.get_ints("axes") or _integers((*node.inputs, None)[1])
    if not axes or node.op_type not in ("Squeeze", "Unsqueeze"):
        return None
    if node.op_type == "Squeeze":
        return tuple(transfer.squeezed(shape, axes))
    made = transfer.unsqueezed(shape, axes, lambda: 1)
    return None if made is None else tuple(made)


def _integers(value: ir.Value | None) -> Shape | None:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tuple(map(int, tensor.numpy().ravel()))


def _is_per_channel(node: ir.Node, place: int, shape: Shape) -> bool:
    """Whether it is a bias or a scale of the channels of a layer with constant weights.

    Behind a product that is a bias (columns,); behind a convolution or a normalisation
    (C, 1, ...) or (1, C, 1, ...), and other such numbers may be between them.
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
    if weight is None:
        return False
    if layer.op_type == "BatchNormalization":
        return (
            len(shape) > 1 and weight[0] in shape[:2] and math.prod(shape) == weight[0]
        )
    if node.op_type == "Add" and len(layer.inputs) > 2:
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
    tensor = _filled(maker) if maker is not None and tensor is None else tensor
    return None if tensor is None else tuple(tensor.shape.numpy())
