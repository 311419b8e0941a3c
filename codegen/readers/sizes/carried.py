"""Forget sizes of loop-carried values that a body changes.

Exporters declare the shape of the first round. A list that a Concat extends has another
one in the next: an empty start is no empty part for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from burnish.codegen.errors import Explain
from burnish.codegen.ops import Trait, having

#: The first carried input and result of a body, and where its node has the result.
_CARRIED = {"Loop": (2, 1), "Scan": (0, 0)}
_RESIZES = having(Trait.RESIZE)
_HANDS_ON = having(
    Trait.ELEMENTWISE | Trait.BROADCAST | Trait.SAME_SHAPE | Trait.VIEW
) | {"Identity", "If"}


def forget_changing(model: ir.Model, explain: Explain) -> None:
    """Leave open the sizes of carried values that may change from round to round."""
    nodes = [node for graph in model.graphs() for node in graph]
    for node in nodes:
        if node.op_type in _CARRIED and not node.domain:
            for value, result, after in _carried(node):
                if value.shape is not None and _is_resized(value, result):
                    _forget(value, result, after, explain)


def _carried(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value, ir.Value]]:
    """Each carried value of a body, its value for the next round, and the node's."""
    body = node.attributes["body"].as_graph()
    entering, leaving = _CARRIED[node.op_type]
    states = len(body.inputs) - entering
    if node.op_type == "Scan":
        states -= node.attributes["num_scan_inputs"].as_int()
    yield from zip(
        body.inputs[entering : entering + states],
        body.outputs[leaving : leaving + states],
        node.outputs[:states],
        strict=False,
    )


def _is_resized(value: ir.Value, result: ir.Value) -> bool:
    """Whether operators that resize or hand sizes on lead from a value to a result."""
    waiting = [(result, False)]
    seen = set(waiting)
    while waiting:
        each, resized = waiting.pop()
        if each is value and resized:
            return True
        node = each.producer()
        if node is None or node.domain:
            continue
        if node.op_type not in _RESIZES | _HANDS_ON:
            continue
        further = resized or node.op_type in _RESIZES
        for source in _sources(node, each):
            if source is not None and (source, further) not in seen:
                seen.add((source, further))
                waiting.append((source, further))
    return False


def _sources(node: ir.Node, result: ir.Value) -> list[ir.Value | None]:
    """What a node's result is made of: the results of branches, or all inputs."""
    if node.op_type != "If":
        return list(node.inputs)
    place = list(node.outputs).index(result)
    branches = ("then_branch", "else_branch")
    return [node.attributes[name].as_graph().outputs[place] for name in branches]


def _forget(
    value: ir.Value, result: ir.Value, after: ir.Value, explain: Explain
) -> None:
    """Keep the sizes on which a carried value and its next one agree."""
    ours, theirs = value.shape, result.shape
    assert ours is not None
    agreed: list[int | ir.SymbolicDim | None] = [None] * len(ours)
    if theirs is not None and len(ours) == len(theirs):
        agreed = [a if a == b else None for a, b in zip(ours, theirs, strict=True)]
    if agreed == list(ours):
        return
    explain(f"carried value {value.name!r}: its size may change from round to round")
    for each in (value, result, after):
        if each.shape is not None and len(each.shape) == len(agreed):
            each.shape = ir.Shape(agreed)
