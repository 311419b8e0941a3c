"""LSTM, GRU and RNN nodes as PyTorch's layers, without initial states that are zero.

`burnish.Recurrent(x, W, R[, B][, P], ..., states)` has one W, R, B and P for each of
its `layers`, as ONNX packs them. Its results are y (T, N, D * H), or (N, T, D * H) with
`batch_first`, and last states (L * D, N, H); T time, N batch, D directions, L layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.shapes.dims import axes_of, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.symbolic.sizes import parse

STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
_USUAL = {"LSTM": [b"sigmoid", b"tanh", b"tanh"], "GRU": [b"sigmoid", b"tanh"]}
_PLAIN = {"activations", "direction", "hidden_size", "input_forget", "layout"}
_PLAIN |= {"linear_before_reset"}
_LARGEST = 1 << 20  # elements that are looked at whether they are zeros
SWAP = (1, 0, 2)


def start_from_nothing(_model: ir.Model, node: ir.Node) -> bool:
    """Take initial states out that are zeros: without any, a layer starts so."""
    given = [v for v in node.inputs[5:7] if v is not None]
    if not given or not all(map(is_zero, given)):
        return False
    for place in range(5, min(7, len(node.inputs))):
        node.replace_input_with(place, None)
    return True


_MOVES = having(Trait.VIEW | Trait.SELECTION) | {"Cast", "Expand"}


def is_zero(value: ir.Value | None) -> bool:
    """Whether nothing but zeros can be in it."""
    tensor = g.constant(value)
    if tensor is not None:
        return tensor.size < _LARGEST and not tensor.numpy().any()
    maker = g.maker_of(value)
    if maker is None or maker.domain:
        return False
    if maker.op_type == "ConstantOfShape":
        held = maker.attributes.get("value")
        return held is None or not held.as_tensor().numpy().any()
    if maker.op_type == "Concat":
        return all(map(is_zero, maker.inputs))
    return maker.op_type in _MOVES and is_zero(maker.inputs[0])


# --- one node ---


def as_layer(model: ir.Model, node: ir.Node) -> bool:
    """Rewrite a node that PyTorch's layer covers."""
    if not _is_plain(node):
        return False
    y = node.outputs[0]
    end = _end(y, _directions(node))
    if (y.uses() and end is None) or y.is_graph_output():
        return False
    bias = len(node.inputs) > 3 and node.inputs[3] is not None
    relu = node.op_type == "RNN" and _activations(node)[:1] == [b"relu"]
    attributes = {
        "kind": node.op_type,
        "directions": _directions(node),
        "bias": int(bias),
        "nonlinearity": "relu" if relu else "tanh",
    }
    if node.op_type == "GRU":
        attributes["reset_after"] = g.attribute(node, "linear_before_reset", 0)
    weights = _weights(node)
    attributes["peepholes"] = len(weights) - bias - 2
    states = [v for v in node.inputs[5:7] if v is not None]
    made = recurrent(node, [node.inputs[0], *weights, *states], attributes)
    if end is not None:
        _hand_on(model, made, end, _directions(node))
    for old, new in zip(node.outputs[1:], made.outputs[1:], strict=False):
        instead(old, new)
    g.owner(node).remove(node, safe=True)
    return True


def _weights(node: ir.Node) -> list[ir.Value]:
    """Its W, R, B and P, as far as it has them."""
    given = (*node.inputs[1:4], *node.inputs[7:8])
    return [value for value in given if value is not None]


def _is_plain(node: ir.Node) -> bool:
    kind, inputs = node.op_type, list(node.inputs) + [None] * 8
    states = [v is not None for v in inputs[5 : 5 + STATES[kind]]]
    activations = _activations(node)
    usual = _USUAL.get(kind)
    known = activations == usual if usual else activations in ([b"tanh"], [b"relu"])
    return (
        node.attributes.keys() <= _PLAIN
        and known
        and g.attribute(node, "direction", "forward") in ("forward", "bidirectional")
        and not g.attribute(node, "input_forget", 0)
        and not g.attribute(node, "layout", 0)
        and inputs[4] is None
        and all(states) == any(states)
        and all(
            g.constant(v) is not None and len(v.uses()) == 1 for v in _weights(node)
        )
    )


def _activations(node: ir.Node) -> list[bytes]:
    """Those of one direction, in small letters; [] where directions differ."""
    held = node.attributes.get("activations")
    default = _USUAL.get(node.op_type, [b"tanh"])
    if held is None:
        return default
    given = [word.lower().encode() for word in held.as_strings()]
    first = given[: len(default)]
    return first if given == first * _directions(node) else []


def _directions(node: ir.Node) -> int:
    return 2 if g.attribute(node, "direction", "forward") == "bidirectional" else 1


def _end(y: ir.Value, directions: int) -> ir.Node | None:
    """The one node behind y (T, D, N, H) that makes (T, N, D * H) or (N, T, D * H)."""
    users = list(y.uses())
    if len(users) != 1:
        return None
    user = users[0][0]
    if user.op_type == "Squeeze" and directions == 1:
        return user if axes_of(user, g.integers) == [1] else None
    transposed, order = user.outputs[0], perm(user)
    if transposed.is_graph_output():
        return None
    readers = [reader for reader, _ in transposed.uses()]
    reshapes = [reader for reader in readers if reader.op_type == "Reshape"]
    if order not in ((0, 2, 1, 3), (2, 0, 1, 3)) or len(reshapes) != 1:
        return None
    if any(reader.op_type not in ("Reshape", "Shape") for reader in readers):
        return None
    before, after = declared(transposed), declared(reshapes[0].outputs[0])
    if before is None or after is None or None in before or len(after) != 3:
        return None
    size = g.unwrap(before[3])
    fits = after == [*before[:2], size * parse(directions)]
    return reshapes[0] if fits else None


def recurrent(
    like: ir.Node,
    inputs: Sequence[ir.Value | None],
    attributes: Mapping[str, Any],
) -> ir.Node:
    """A Recurrent node before `like`, with its name and scope, dtypes and states."""
    made = ir.node(
        *("Recurrent", inputs, attributes),
        domain="burnish",
        num_outputs=1 + STATES[attributes["kind"]],
    )
    for old, new in zip(like.outputs, made.outputs, strict=False):
        new.type, new.shape = old.type, old.shape
    g.before(like, made)
    return made


def _hand_on(model: ir.Model, made: ir.Node, end: ir.Node, directions: int) -> None:
    """Replace the results of the nodes behind the old layer by the new one's."""
    y, result, turn = made.outputs[0], end.outputs[0], end.inputs[0]
    transposed = None if end.op_type == "Squeeze" else turn
    y.type, y.shape, last = result.type, result.shape, y
    if transposed is not None and perm(transposed.producer())[0] == 2:
        y.shape = swapped(result.shape)
        last = swap(end, y)
        last.type, last.shape = result.type, result.shape
    if transposed is not None:
        _four_axes(model, end, transposed, last, directions)
    instead(result, last)
    g.owner(end).remove(end, safe=True)
    if transposed is not None and (maker := transposed.producer()) is not None:
        g.owner(maker).remove(maker, safe=True)


def _four_axes(
    model: ir.Model, end: ir.Node, transposed: ir.Value, last: ir.Value, directions: int
) -> None:
    """Let readers of the shape (T, N, D, H) read (T, N, D * H) with split axes."""
    readers = [reader for reader, _ in transposed.uses() if reader is not end]
    if not readers:
        return
    shape = g.new_constant(model, end.name or "", [0, 0, directions, -1])
    split = ir.Node("", "Reshape", [last, shape], name=end.name)
    split.outputs[0].type, split.outputs[0].shape = transposed.type, transposed.shape
    g.owner(end).insert_before(end, split)
    for reader in readers:
        reader.replace_input_with(0, split.outputs[0])


def swap(like: ir.Node, value: ir.Value) -> ir.Value:
    """`value` with its first two axes swapped, by a node before `like`."""
    made = ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", SWAP)])
    g.before(like, made)
    return made.outputs[0]


def swapped(shape: ir.Shape | None) -> ir.Shape | None:
    return None if shape is None else ir.Shape([shape[1], shape[0], *shape[2:]])


def perm(node: ir.Node | None) -> tuple[int, ...]:
    """The order of axes that a Transpose of three or four makes; () for others."""
    if node is None or node.op_type != "Transpose":
        return ()
    return tuple(node.attributes.get_ints("perm", ()))


def instead(old: ir.Value, new: ir.Value) -> None:
    """Let everybody who reads `old` read `new`, under the name that callers know."""
    name, wanted = old.name, old.is_graph_output()
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    if wanted:
        old.name, new.name = None, name


def joins(node: ir.Node, one: list[ir.Value], two: list[ir.Value]) -> bool:
    """Whether it joins the features of both directions, in their order."""
    if node.op_type != "Concat" or node.domain or len(node.inputs) != 2:
        return False
    along = g.attribute(node, "axis", 0) in (2, -1)
    return along and node.inputs[0] in one and node.inputs[1] in two
