"""Find the author's module of each quantization node."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from burnish.codegen.program import Scope
from burnish.codegen.scopes import scope_of, write_scope

Path = tuple[str, ...]


def place(model: ir.Model, nodes: Iterable[ir.Node]) -> None:
    """Put roundings where their numbers are made, but into no module of one layer."""
    made = list(nodes)
    ours = set(made)
    scopes = {node: scope_of(node) for node in model.graph if node not in ours}
    inside = {
        _path(scope)[:depth] for scope in scopes.values() for depth in range(len(scope))
    }
    for node in made:
        value = node.inputs[0]
        maker = None if value is None else value.producer()
        scope = () if maker is None else scope_of(maker)
        path = _path(scope)
        readers = [scopes.get(user, ()) for user, _ in node.outputs[0].uses()]
        at_home = all(_path(reader)[: len(path)] == path for reader in readers)
        if scope and path not in inside and not at_home:
            scope = scope[:-1]
        write_scope(node, scope)


def _path(scope: Scope) -> Path:
    return tuple(level.name for level in scope)
