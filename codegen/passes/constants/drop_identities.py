"""Remove operators that return their input: equal shape, dtype and numbers.

And inputs that add nothing: empty parts of a Concat, a bias of constant zeros.

Dropout is not one of them (it acts in training), and neither is `x * one` where `one`
has dimensions (it may broadcast) or is a weight that happens to be one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.names import authorship
from burnish.codegen.ops import Trait, having, neutral_of, weights_of
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.strided import read_in_order
from burnish.codegen.weights import constants

_COMMUTATIVE = having(Trait.COMMUTATIVE)
_LAYERS = having(Trait.PRODUCT | Trait.CONVOLUTION) | {"LayerNormalization"}


def drop_identities(model: ir.Model, account: Account) -> bool:
    """Forward the input of every node that is proven to change nothing."""
    changed = False
    for node in g.all_nodes(model):
        changed |= _without_empty(node) or _without_zeros(node)
        kept = _kept(node) if node.domain == "" and node.inputs else None
        if kept is not None and g.forward(node, kept):
            account.did("node that changes nothing", g.label(node))
            changed = True
    return changed


def _without_empty(node: ir.Node) -> bool:
    """Drop parts of length 0 from a Concat."""
    if node.op_type != "Concat" or node.domain:
        return False
    axis = node.attributes["axis"].as_int()
    full = [part for part in node.inputs if not _is_empty(part, axis)]
    if not full or len(full) == len(node.inputs):
        return False
    node.resize_inputs(len(full))
    for place, part in enumerate(full):
        node.replace_input_with(place, part)
    return True


def _without_zeros(node: ir.Node) -> bool:
    """Drop a bias of zeros that the exporter made where the layer has none."""
    places = weights_of(node.domain, node.op_type)
    place = len(node.inputs) - 1
    if node.op_type not in _LAYERS or place not in places[1:]:
        return False
    bias = node.inputs[place]
    tensor = g.constant(bias)
    if bias is None or tensor is None or not constants.is_marked(bias):
        return False
    if tensor.numpy().any():
        return False
    node.resize_inputs(place)
    return True


def _is_empty(value: ir.Value | None, axis: int) -> bool:
    if value is None or value.shape is None:
        return False
    rank = len(value.shape)  # a branch that is not taken may name an axis beyond it
    return -rank <= axis < rank and value.shape[axis] == 0


def _kept(node: ir.Node) -> ir.Value | None:
    """The input that the node returns unchanged, if it does."""
    first, test = node.inputs[0], _TESTS.get(node.op_type)
    if first is None:
        return None
    if test is not None and test(node):
        return first
    for before in (read_in_order, _split_before, _chosen, _negated_before):
        if (found := before(node)) is not None:
            return found
    neutral = neutral_of(node.op_type)
    if neutral is None or len(node.inputs) != 2:
        return None
    second = node.inputs[1]
    if _is_number(second, neutral):
        return first
    swapped = node.op_type in _COMMUTATIVE and _is_number(first, neutral)
    return second if swapped else None


def _chosen(node: ir.Node) -> ir.Value | None:
    """What a Where with a known condition takes all elements from."""
    tensor = g.constant(node.inputs[0]) if node.op_type == "Where" else None
    if tensor is None or tensor.size != 1:
        return None
    kept = node.inputs[1 if tensor.numpy().item() else 2]
    if kept is None or not g.proven_equal(kept, node.outputs[0]):
        return None  # it broadcasts
    return kept


def _negated_before(node: ir.Node) -> ir.Value | None:
    """What a Not negated that this Not negates again."""
    before = g.maker_of(node.inputs[0], "Not") if node.op_type == "Not" else None
    return None if before is None else before.inputs[0]


def _alone(node: ir.Node) -> bool:
    return len(node.inputs) == 1


def _leaves_all(node: ir.Node) -> bool:
    """Whether a Split's first part is the whole and no other part is read."""
    others = node.outputs[1:]
    if any(other.uses() or other.is_graph_output() for other in others):
        return False
    return _same_shape(node)


def _split_before(node: ir.Node) -> ir.Value | None:
    """What a Split took apart and this Concat joins in the same order."""
    first, split = node.inputs[0], g.maker_of(node.inputs[0], "Split")
    if node.op_type != "Concat" or split is None:
        return None
    rank = 0 if first is None or first.shape is None else len(first.shape)
    axes = {g.attribute(node, "axis", 0), g.attribute(split, "axis", 0)}
    along = {axis % rank for axis in axes if isinstance(axis, int)} if rank else axes
    whole = list(node.inputs) == list(split.outputs)
    return split.inputs[0] if whole and len(along) == 1 else None


def _same_dtype(node: ir.Node) -> bool:
    source = g.unwrap(node.inputs[0])
    return source.dtype is not None and g.attribute(node, "to", None) == source.dtype


def _same_shape(node: ir.Node) -> bool:
    source = g.unwrap(node.inputs[0])
    return g.proven_equal(source, node.outputs[0])


def _same_order(node: ir.Node) -> bool:
    source, perm = g.unwrap(node.inputs[0]), node.attributes.get_ints("perm")
    if perm is None:
        return source.shape is not None and len(source.shape) < 2
    return list(perm) == sorted(perm)


def _flat_already(node: ir.Node) -> bool:
    source = g.unwrap(node.inputs[0])
    two = source.shape is not None and len(source.shape) == 2
    return two and g.attribute(node, "axis", 1) in (1, -1)


def _all_of(number: int) -> Callable[[ir.Node], bool]:
    def test(node: ir.Node) -> bool:
        found = g.integers(node.inputs[1]) if len(node.inputs) > 1 else None
        return found is not None and all(i == number for i in found)

    return test


def _expands_nothing(node: ir.Node) -> bool:
    if _same_shape(node) or (_all_of(1)(node) and _rank_covers(node)):
        return True
    return not node.outputs[0].is_graph_output() and _broadcasts_anyway(node.outputs[0])


def _broadcasts_anyway(value: ir.Value) -> bool:
    """Whether all who read it combine it with a value of its shape."""
    for user, place in value.uses():
        other = user.inputs[1 - place] if len(user.inputs) == 2 else None
        if user.op_type not in _BROADCASTING or user.domain or other is None:
            return False
        if other is value or not g.proven_equal(other, value):
            return False
    return True


_BROADCASTING = frozenset(("Add", "Div", "Mul", "Pow", "Sub"))


def _rank_covers(node: ir.Node) -> bool:
    source, shape = g.unwrap(node.inputs[0]), g.constant(node.inputs[1])
    if source.shape is None or shape is None:
        return False
    return shape.size <= len(source.shape)


def _is_number(value: ir.Value | None, number: float) -> bool:
    """A constant without axes, no weight, that is this number.

    Floats have two zeros: x - 0.0 is x for every x, and x + 0.0 is not.
    """
    tensor = g.constant(value)
    if tensor is None or len(tensor.shape) != 0 or constants.trains(value):
        return False
    if not tensor.dtype.is_floating_point():
        return g.scalar(value) == number
    found = tensor.numpy()
    return bool(found == number and np.signbit(found) == np.signbit(number))


_FAR = 2**31 - 1
"""From here on a bound means "to the end"."""
_FAR_IN_TENSORFLOW = 10**9
"""The value that TensorFlow's exporter writes for it."""


def _takes_all(node: ir.Node) -> bool:
    """A slice from 0 to the end, in steps of 1."""
    if len(node.inputs) < 3 or not (_same_shape(node) or _is_endless(node.inputs[2])):
        return False
    return g.starts_at_zero(node)


def _is_endless(ends: ir.Value | None) -> bool:
    found = g.integers(ends)
    if found is None or ends is None:
        return False
    by_tensorflow = authorship.is_tensorflows(ends.name or "")
    far = _FAR_IN_TENSORFLOW if by_tensorflow else _FAR
    return all(end >= far for end in found)


_TESTS: dict[str, Callable[[ir.Node], bool]] = {
    "Identity": lambda _: True,
    **dict.fromkeys(("Concat", "Max", "Mean", "Min", "Sum"), _alone),
    "Cast": _same_dtype,
    "Split": _leaves_all,
    "Expand": _expands_nothing,
    "Flatten": _flat_already,
    "Pad": _all_of(0),
    "Reshape": _same_shape,
    "Slice": _takes_all,
    "Tile": _all_of(1),
    "Transpose": _same_order,
}
