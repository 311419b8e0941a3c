"""Untie scales and biases at their initial values, which an exporter merged as equal.

Fresh scales are all ones, fresh biases all zeros and a PReLU's slopes 0.25, so that
exporters and simplifiers which store equal tensors once let all layers read the same
one. They are weights of one layer each, unless it is the same layer that is called
again: then one of its neighbours reads a matrix that the neighbour of the other call
reads too, and the layer's other vectors are the same ones.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.program import level_names
from burnish.codegen.scopes import scope_of
from burnish.codegen.weights import constants, origin

Use = tuple[ir.Node, int]
"""A node and which of its inputs."""

_AFFINE = ("weight", "bias")
#: What layers call their vectors, by the operator's inputs from the second on.
_SLOTS = {
    "BatchNormalization": (*_AFFINE, "running_mean", "running_var"),
    "Conv": (None, "bias"),
    "ConvTranspose": (None, "bias"),
    "Gemm": (None, "bias"),
    "GroupNormalization": _AFFINE,
    "InstanceNormalization": _AFFINE,
    "LayerNormalization": _AFFINE,
    "PRelu": ("weight",),
    "RMSNormalization": ("weight",),
}
_FARTHEST = 64
"""Steps to a neighbour, so that long chains without weights cost nothing."""


def fresh_apart(model: ir.Model, value: ir.Value, account: Account) -> bool:
    """Give each layer that reads a fresh vector one of its own."""
    if value.is_graph_output() or not constants.trains(value) or not _is_fresh(value):
        return False
    name = value.name or ""
    for node, _ in list(value.uses()):
        if node.op_type == "Identity" and not node.domain:
            g.forward(node, value)
    layers = _layers([use for use in value.uses() if _slot(*use) is not None])
    own = [uses for uses in layers if _path(*uses[0]) == name]
    rest = [uses for uses in layers if uses not in own]
    read_by_layers = sum(map(len, layers)) == len(value.uses())
    if not own and len(rest) == len(layers) and read_by_layers:
        rest = rest[1:]  # one of them keeps what there is
    for uses in rest:
        own_copy(model, value, uses, _path(*uses[0]) or name)
    if rest:
        account.did(f"fresh weight that {len(layers)} layers shared", name)
    return bool(rest)


def own_copy(
    model: ir.Model,
    value: ir.Value,
    uses: Sequence[Use],
    name: str | None,
    *,
    trains: bool = True,
) -> None:
    """Let these uses of a weight read a copy of their own."""
    assert value.const_value is not None
    like = ir.Value(name=name, metadata_props=dict(value.metadata_props))
    tensor = origin.copied(value.const_value, [origin.use(*use) for use in uses])
    copy = g.initializer(model, like, tensor, trains=trains)
    for node, index in uses:
        node.replace_input_with(index, copy)


def _is_fresh(value: ir.Value) -> bool:
    """Whether it is a vector of ones, of zeros, or of a PReLU's first slopes."""
    tensor = value.const_value
    if tensor is None or len(tensor.shape) == 0:
        return False
    sizes = [size for size in tensor.shape.numpy() if size != 1]
    if len(sizes) > 1 or tensor.size == 0:
        return False
    values = tensor.numpy().reshape(-1)
    return values[0] in (0, 0.25, 1) and bool((values == values[0]).all())


def _slot(node: ir.Node, index: int) -> str | None:
    """What a layer calls the vector that it reads here; None where none does.

    A factor with an addend behind it is a norm's, an addend behind a product a layer's.
    """
    if node.domain:
        return None
    slots = _SLOTS.get(node.op_type, ())
    if 0 < index <= len(slots):
        return slots[index - 1]
    vector, other = node.inputs[index], _other(node, index)
    if vector is None or vector.const_value is None or vector.const_value.size < 2:
        return None
    if node.op_type == "Mul":
        readers = [user for user, _ in node.outputs[0].uses()]
        behind = len(readers) == 1 and readers[0].op_type == "Add"
        return "weight" if behind and any(map(_is_vector, readers[0].inputs)) else None
    made = None if other is None else other.producer()
    if node.op_type != "Add" or made is None or made.domain:
        return None
    scaled = made.op_type == "Mul" and any(map(_is_vector, made.inputs))
    return "bias" if scaled or _matrices(made) else None


def _other(node: ir.Node, index: int) -> ir.Value | None:
    """The other operand of a node that has two."""
    return node.inputs[1 - index] if len(node.inputs) == 2 else None


def _is_vector(value: ir.Value | None) -> bool:
    tensor = None if value is None else g.behind_identities(value).const_value
    return tensor is not None and tensor.size == max((1, *tensor.shape.numpy())) > 1


def _path(node: ir.Node, index: int) -> str:
    """The weight's path in the author's model, "" where nothing tells of it.

    The scope does, or the name of the layer's other vector.
    """
    scope, slot = [level.name for level in scope_of(node)], _slot(node, index)
    if slot is None:
        return ""
    for other in _vectors(node, index):
        layer, _, kind = (other.name or "").rpartition(".")
        if layer and not scope and kind in _AFFINE and kind != slot:
            return f"{layer}.{slot}"
    return ".".join((*scope, slot)) if scope else ""


def _vectors(node: ir.Node, index: int) -> list[ir.Value]:
    """The weights that a layer's operator reads beside this one."""
    others = [v for i, v in enumerate(node.inputs) if i != index and v is not None]
    return [v for v in map(g.behind_identities, others) if v.const_value is not None]


def _layers(uses: list[Use]) -> list[list[Use]]:
    """Uses by layer: several are of one where its calls have the same place in it."""
    root = {use: use for use in uses}

    def found(use: Use) -> Use:
        while root[use] != use:
            use = root[use]
        return use

    for same in _calls(uses):
        for other in same[1:]:
            root[found(other)] = found(same[0])
    layers: dict[Use, list[Use]] = defaultdict(list)
    for use in uses:
        layers[found(use)].append(use)
    return list(layers.values())


def _calls(uses: Iterable[Use]) -> Iterator[list[Use]]:
    """Lists of uses that are calls of one layer."""
    by_scope: dict[Hashable, list[Use]] = defaultdict(list)
    near: dict[Hashable, dict[ir.Node, list[Use]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for use in uses:
        node, index = use
        scope = level_names(scope_of(node))
        beside = tuple(map(id, _vectors(node, index)))
        if scope:
            by_scope[scope, node.op_type, index].append(use)
        for side, neighbour in _neighbours(node):
            for matrix in _matrices(neighbour):
                key = (side, node.op_type, index, neighbour.op_type, id(matrix))
                near[key, beside][neighbour].append(use)
    yield from by_scope.values()
    for readers in near.values():
        for same in itertools.zip_longest(*readers.values()):
            yield [use for use in same if use is not None]


def _neighbours(node: ir.Node) -> Iterator[tuple[str, ir.Node]]:
    """The node itself where it has a matrix, else the nearest on either side."""
    if _matrices(node):
        yield "own", node
        return
    for side, step in (("before", _before), ("behind", _behind)):
        at = step(node)
        for _ in range(_FARTHEST):
            if at is None or _matrices(at):
                break
            at = step(at)
        if at is not None and _matrices(at):
            yield side, at


def _before(node: ir.Node) -> ir.Node | None:
    made = (value.producer() for value in node.inputs if value is not None)
    return next(filter(None, made), None)


def _behind(node: ir.Node) -> ir.Node | None:
    return next((user for user, _ in node.outputs[0].uses()), None)


def _matrices(node: ir.Node) -> list[ir.Value]:
    """The weights of a layer that are no vectors: initializers of two axes or more."""
    given = [v for v in node.inputs if v is not None]
    return [v for v in given if (held := v.const_value) is not None and is_matrix(held)]


def is_matrix(tensor: ir.TensorProtocol) -> bool:
    """Whether it holds floats, along two axes or more."""
    floats = tensor.dtype.is_floating_point()
    return floats and sum(size != 1 for size in tensor.shape.numpy()) > 1


def matrices_beside(vector: ir.Value) -> set[ir.Value]:
    """The matrices of the layers that read a vector, or of the next on one side."""
    nearest = (next(_neighbours(node), None) for node, _ in vector.uses())
    return {matrix for found in nearest if found for matrix in _matrices(found[1])}
