"""The author's module path of a node, from exporters' metadata and node names.

torch's newer exporter writes `pkg.torch.onnx.name_scopes` ("['', 'layer1',
'layer1.0', 'layer1.0.conv1', 'conv2d_3']") and `class_hierarchy` beside it; the older
one writes the path into node names ("/layer1/layer1.0/conv1/Conv"). What TensorFlow
leaves is brought into the first form (`tensorflow`).
"""

from __future__ import annotations

import ast
import functools
import re

import onnx_ir as ir

from burnish.codegen.names.authorship import as_given
from burnish.codegen.program import Level, Scope

SCOPES = "pkg.torch.onnx.name_scopes"
CLASSES = "pkg.torch.onnx.class_hierarchy"


#: `self.layers[1:](x)` calls a Sequential of that name, whose layers keep theirs.
_CUT = "slice("
#: What onnxruntime adds to the name of the node that it fused:
#: "/fc/MatMul/MatMulAddFusion".
_FUSED = re.compile(r"/[A-Z]\w*Fusion/?$")
#: Levels of modules; a path of more is none that a person wrote.
_DEEPEST = 64
#: Passes ask for the scope of each node again and again.
_NODES = 1 << 14


def scope_of(node: ir.Node) -> Scope:
    """The modules that the node was written in, outermost first; () at the root."""
    if SCOPES in node.metadata_props:
        return _from_metadata(node)
    name = as_given(node.name or "")
    return () if max(map(name.count, "/.")) > _DEEPEST else scope_of_name(name)


def is_placed(node: ir.Node) -> bool:
    """Whether an exporter says where the node is, be it at the root."""
    return SCOPES in node.metadata_props or (node.name or "").startswith("/")


def write_scope(node: ir.Node, scope: Scope) -> None:
    """Leave a scope at a node as torch's newer exporter does."""
    names = [level.name for level in scope]
    paths = [".".join(names[: depth + 1]) for depth in range(len(names))]
    kinds = [level.kind for level in scope]
    node.metadata_props[SCOPES] = repr(["", *paths, node.name or ""])
    node.metadata_props[CLASSES] = repr(["Model", *kinds, node.op_type])


def _from_metadata(node: ir.Node) -> Scope:
    names = _strings(node.metadata_props[SCOPES])
    if len(names) > _DEEPEST or any(name.count(".") > _DEEPEST for name in names):
        return ()
    kinds = _strings(node.metadata_props.get(CLASSES, "[]"))
    if len(kinds) != len(names):
        kinds = [""] * len(names)
    levels: list[Level] = []
    path = ""
    for name, kind in list(zip(names, kinds, strict=True))[:-1]:
        if not name:
            continue
        inside = f"{path}." if path else ""
        if not name.startswith(inside):
            break
        *outer, last = name[len(inside) :].split(".")
        levels += [Level(part) for part in outer]
        levels.append(Level(last, kind.rpartition(".")[2]))
        path = name
    return tuple(level for level in levels if not level.name.startswith(_CUT))


@functools.lru_cache(_NODES)
def scope_of_name(name: str) -> Scope:
    """The modules in a node name such as /layer1/layer1.0/conv1/Conv."""
    if not name.startswith("/"):
        return ()
    path: list[str] = []
    for component in _FUSED.sub("", name).strip("/").split("/")[:-1]:
        parts = component.split(".")
        known = max(k for k in range(len(parts)) if path[len(path) - k :] == parts[:k])
        path += parts[known:]
    return tuple(Level(part) for part in path)


def _strings(text: str) -> list[str]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    return [str(item) for item in value] if isinstance(value, list) else []
