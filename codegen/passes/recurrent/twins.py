"""Merge loop-carried values that are equal in every iteration.

Keras carries the last output of a masked layer beside its state; both start from zeros.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.recurrent.layer import is_zero
from burnish.codegen.passes.recurrent.parts import depend_on

_Pairs = dict[ir.Value, ir.Value]


def same_states(model: ir.Model, account: Account) -> bool:
    """Let the readers of a carried value read the first one that is equal to it."""
    rewrites = {"carried value that another one equals": _merged}
    return g.rewrite_nodes(model, account, rewrites, "Loop")


def _merged(_model: ir.Model, node: ir.Node) -> bool:
    body = node.attributes["body"].as_graph()
    alike: dict[object, list[int]] = defaultdict(list)  # by type and initial value
    for place, inside in enumerate(body.inputs[2:]):
        start = node.inputs[2 + place]
        if start is not None and inside.uses():
            key = start.dtype if is_zero(start) else start
            alike[inside.dtype, key].append(place)
    for places in alike.values():
        for one, other in combinations(places, 2):
            pairs = _equal(node, body, one, other)
            if pairs is not None:
                _merge(node, body, (one, other), pairs)
                return True
    return False


def _equal(node: ir.Node, body: ir.Graph, one: int, other: int) -> _Pairs | None:
    """The values inside that are equal where both carried values are, by induction.

    Both are of one type, and start from one value or from zeros.
    """
    first, second = node.inputs[2 + one], node.inputs[2 + other]
    assert first is not None
    assert second is not None
    if first is not second and not g.proven_equal(first, second):
        return None
    pairs = {body.inputs[2 + other]: body.inputs[2 + one]}
    results = body.outputs[1 + one], body.outputs[1 + other]
    return pairs if _compute_same(*results, body, pairs) else None


def _compute_same(
    one: ir.Value | None, other: ir.Value | None, body: ir.Graph, pairs: _Pairs
) -> bool:
    """Whether two values are the same function of the same values; grows `pairs`."""
    if one is None or other is None:
        return one is other
    one, other = g.behind_identities(one), g.behind_identities(other)
    if one is other or pairs.get(other) is one:
        return True
    first, second = one.producer(), other.producer()
    if first is None or second is None or first.graph is not body:
        return False
    if (first.domain, first.op_type) != (second.domain, second.op_type):
        return False
    if first.op_type in g.RANDOM or [*g.bodies(first)] or second.graph is not body:
        return False
    if first.attributes != second.attributes or first.version != second.version:
        return False
    if first.outputs.index(one) != second.outputs.index(other):
        return False
    if len(first.inputs) != len(second.inputs) or not all(
        _compute_same(a, b, body, pairs)
        for a, b in zip(first.inputs, second.inputs, strict=True)
    ):
        return False
    pairs[other] = one
    return True


def _merge(
    node: ir.Node, body: ir.Graph, places: tuple[int, int], pairs: _Pairs
) -> None:
    """Read the first of each pair instead of the second; the rest is dead then."""
    for other, one in pairs.items():
        for reader, place in tuple(other.uses()):
            reader.replace_input_with(place, one)
        for place, result in enumerate(body.outputs):
            if result is other:
                body.outputs[place] = _named(one, result, body)
    body.sort()  # the first of a pair may have been computed behind the second
    first, second = (node.outputs[place] for place in places)
    start, plain = (node.inputs[2 + place] for place in places)
    if plain is not None and (maker := plain.producer()) and depend_on([start], maker):
        node.replace_input_with(2 + places[0], plain)
    for reader, place in tuple(second.uses()):
        reader.replace_input_with(place, first)


def _named(value: ir.Value, like: ir.Value, body: ir.Graph) -> ir.Value:
    """The value as a result of its own: no two results are one value."""
    made = ir.Node("", "Identity", [value], name=f"{like.name}/same")
    made.outputs[0].type, made.outputs[0].shape = value.type, value.shape
    body.append(made)
    return made.outputs[0]
