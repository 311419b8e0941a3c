"""Write scopes for files from TensorFlow as PyTorch's exporter writes them.

TensorFlow and Keras leave scopes in the names of operators and variables only, and
converters name what they make themselves by counting. So an operator with weights is
where its weights are, and an operator without a name where its neighbours are.
"""

from __future__ import annotations

from collections import defaultdict

import onnx_ir as ir

from burnish.codegen.ops import Trait, having
from burnish.codegen.program import Scope
from burnish.codegen.scopes import write_scope
from burnish.codegen.tensorflow.names import (
    Path,
    is_own,
    is_tensorflows,
    path_of,
    without_calls,
)
from burnish.codegen.tensorflow.settle import common, fill, settle
from burnish.codegen.tensorflow.tree import Item, shaped
from burnish.codegen.weights import constants

_WEIGHTED = having(Trait.PRODUCT | Trait.CONVOLUTION) | {"Gather"}
_ATTENTION = frozenset(("attention_output", "key", "query", "value"))
"""Sublayers of Keras' attention, which is one layer of its author's."""
_VIEWS = having(Trait.VIEW)
_LEAST = 0.5
"""Names tell of a structure where so many layers are inside of something."""


def write_scopes(model: ir.Model) -> bool:
    """Say at every node which module it is of, where TensorFlow's names tell.

    Names that tell of no module but single layers are left alone: what a graph repeats
    tells more. True if scopes were written.
    """
    nodes = [node for graph in model.graphs() for node in graph]
    names = [node.name or "" for node in nodes]
    names += [v.name or "" for v in model.graph.initializers.values()]
    if not is_tensorflows(model.producer_name or "", names):
        return False
    found = {node: path for node in nodes if (path := _path(node)) is not None}
    reads: dict[Path, set[ir.Value]] = defaultdict(set)
    for node, path in found.items():
        reads[path].update(v for v in node.inputs if v is not None and _is_weight(v))
    bare = without_calls(reads)
    paths = {node: bare[path] for node, path in found.items()}
    weighted = {node for node in paths if any(map(_is_weight, node.inputs))}
    if not weighted:
        return False
    root = common([paths[node] for node in weighted])
    if all(paths[node] == root for node in weighted):
        root = root[:-1]  # the one layer's own
    items = {}
    for node, path in paths.items():
        inner = path[len(root) :] if path[: len(root)] == root else ()
        items[node] = Item(inner, node.op_type, node in weighted)
    blocks = shaped(list(items.values()))
    scopes = {node: item.levels for node, item in items.items()}
    scoped = sum(_is_inside(scopes[node]) for node in weighted)
    if not scoped or scoped < _LEAST * len(weighted):
        return False
    fill(nodes, scopes)
    rest = [node for node in nodes if node not in weighted]
    settle(rest, scopes, blocks)
    for node in nodes:
        write_scope(node, scopes[node])
    return True


def _is_inside(scope: Scope) -> bool:
    return len(scope) > 1 + (scope[-1].name in _ATTENTION if scope else 0)


def _path(node: ir.Node) -> Path | None:
    """Where a node is: by the weight that it alone reads, else by a name.

    A convolution may have the name of the norm that was folded into it.
    """
    if node.op_type in _WEIGHTED:
        for value in node.inputs:
            if value is not None and _is_weight(value) and len(value.uses()) == 1:
                path = path_of(value.name or "")
                if path is not None:
                    return path
    name = node.name or ""
    own = path_of(name)
    if node.op_type in _VIEWS and not is_own(name):
        return None  # the converter's
    made = (path_of(v.name or "") for v in node.outputs)
    return own if own is not None else next((p for p in made if p is not None), None)


def _is_weight(value: ir.Value | None) -> bool:
    tensor = (
        value.const_value if value is not None and constants.trains(value) else None
    )
    return tensor is not None and tensor.size > 1
