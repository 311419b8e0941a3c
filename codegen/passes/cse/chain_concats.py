"""Let a Concat reuse an earlier Concat of its first operands (dense connections).

DenseNets feed each layer everything before it: `concat(a, b)`, then `concat(a, b, c)`.
As `x = concat(a, b)` and `concat(x, c)` every layer takes one tensor, so that layers
are alike.
"""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.passes import graph as g


def chain_concats(model: ir.Model, account: Account) -> bool:
    """Shorten the inputs of every Concat by the longest one before it."""
    return sum(_chained(graph, account) for graph in model.graphs()) > 0


def _chained(graph: ir.Graph | ir.Function, account: Account) -> bool:
    made: dict[tuple[object, ...], ir.Value] = {}
    lengths: set[int] = set()
    changed = False
    for node in graph:
        if node.op_type != "Concat" or node.domain != "":
            continue
        axis, inputs = node.attributes["axis"].as_int(), tuple(node.inputs)
        for length in sorted(lengths, reverse=True):
            start = made.get((axis, *inputs[:length])) if length < len(inputs) else None
            if start is not None:
                node.resize_inputs(1 + len(inputs) - length)
                for place, value in enumerate((start, *inputs[length:])):
                    node.replace_input_with(place, value)
                account.did("Concat that extends an earlier one", g.label(node))
                changed = True
                break
        made.setdefault((axis, *inputs), node.outputs[0])
        lengths.add(len(inputs))
    return changed
