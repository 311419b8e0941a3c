"""Loop-invariant shapes of loop-carried values, proven by induction."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops import shapes_of
from burnish.codegen.ops.shapes.dims import Context, Dims, Shapes, declared


def kept_shapes(node: ir.Node, context: Context) -> dict[ir.Value, Dims | None]:
    """What a Loop's rounds leave of each start's shape, by the body's carried values.

    Proven by induction: where the values of a round have a shape, those of the next
    one have it. What the file says of values inside is not believed.
    """
    body = node.attributes["body"].as_graph()
    starts = node.inputs[2:]
    carried = list(zip(body.inputs[2:], body.outputs[1:], starts, strict=False))
    kept = {inside: declared(start) for inside, _, start in carried}
    while True:
        found = _followed(body, kept, context)
        agreed = {
            inside: _agreed(kept[inside], _of(result, body, found))
            for inside, result, _ in carried
        }
        if agreed == kept:
            return kept
        kept = agreed


def results_of(node: ir.Node, context: Context) -> Shapes:
    """The shapes of a followed Loop's results: last carried values, all rounds'."""
    body = node.attributes["body"].as_graph()
    most, going = [*node.inputs, None, None][:2]
    rounds = None
    if most is not None and going is None and body.outputs[0] is body.inputs[1]:
        rounds = (context.ask(most) or [None])[0]
        if rounds is not None and rounds.value is not None and rounds.value < 0:
            rounds = None
    rows = [declared(value) for value in body.outputs[len(body.inputs) - 1 :]]
    return [
        *(declared(value) for value in body.inputs[2:]),
        *(None if row is None else [rounds, *row] for row in rows),
    ]


def _followed(
    body: ir.Graph, kept: dict[ir.Value, Dims | None], context: Context
) -> dict[ir.Value, Dims | None]:
    """The shapes of all values inside, as far as rules know them."""
    turn, going, *_ = body.inputs
    found: dict[ir.Value, Dims | None] = {turn: [], going: [], **kept}
    for node in body:
        rule = shapes_of(node.domain, node.op_type)
        results: Shapes = []
        if rule is not None:
            try:
                given = [
                    None if v is None else _of(v, body, found) for v in node.inputs
                ]
                results = rule(node, given, context)
            except (LookupError, ValueError, ArithmeticError):
                results = []  # shapes that contradict the operator say nothing
        for place, output in enumerate(node.outputs):
            found[output] = results[place] if place < len(results) else None
    return found


def _of(
    value: ir.Value, body: ir.Graph, found: dict[ir.Value, Dims | None]
) -> Dims | None:
    """The shape found inside, or what holds outside."""
    maker = value.producer()
    inside = maker is not None and maker.graph is body
    return found.get(value) if inside or value in found else declared(value)


def _agreed(one: Dims | None, other: Dims | None) -> Dims | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return [a if a == b else None for a, b in zip(one, other, strict=True)]
