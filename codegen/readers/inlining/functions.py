"""Inline model-local functions; each call site becomes a scope.

Each inlined node gets, in the form that PyTorch's exporter writes, the chain of calls
it came from: `pkg.torch.onnx.name_scopes` (call nodes' names, then its own) and
`pkg.torch.onnx.class_hierarchy` (function names, then its operator).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import onnx_ir as ir

from burnish.codegen.errors import Explain, ReadError
from burnish.codegen.ops import find
from burnish.codegen.program import Level
from burnish.codegen.readers import native
from burnish.codegen.readers.inlining.inline import inline_calls
from burnish.codegen.readers.message import NEWEST, OLDEST, all_nodes
from burnish.codegen.readers.tables import write_back
from burnish.codegen.readers.wire import Table
from burnish.codegen.scopes import SCOPES, write_scope

_Name = tuple[str, str, str]

_CALL = "burnish.call."
#: How many nodes inlining may make: some, and so many for each that is written.
_FEW, _TIMES = 1000, 32
#: How deep calls may nest: modules do, a few levels.
_DEEPEST = 64
#: Functions of these domains are one operator each, not a module of the author's.
_OPERATOR_LIBRARIES = ("pkg.onnxscript", "pkg.torch", "onnxscript")


class _Growth:
    """How many nodes a function becomes when all that it calls is inlined."""

    def __init__(self, message: Any) -> None:
        self.functions = {
            (f.domain, f.name, f.overload): list(all_nodes(f))
            for f in message.functions
        }
        self.sizes: dict[_Name, int] = {}

    def size(self, nodes: Iterable[Any], above: tuple[_Name, ...] = ()) -> int:
        """The number of nodes; recursion is an error, and so are too many levels."""
        if len(above) > _DEEPEST:
            raise ReadError(
                f"functions: expected calls at most {_DEEPEST} deep, got more, through "
                f"{' -> '.join(name[1] for name in above[:4])}"
            )
        total = 0
        for node in nodes:
            name = (node.domain, node.op_type, node.overload)
            if name in above:
                chain = " -> ".join(n[1] for n in (*above[above.index(name) :], name))
                raise ReadError(f"expected functions without recursion, got {chain}")
            if name in self.functions and name not in self.sizes:
                self.sizes[name] = self.size(self.functions[name], (*above, name))
            total += self.sizes.get(name, 1)
        return total


def check_growth(message: Any) -> None:
    """Refuse nested calls that expand to too many nodes."""
    growth, nodes = _Growth(message), list(all_nodes(message.graph))
    written = len(nodes) + sum(map(len, growth.functions.values()))
    inlined, most = growth.size(nodes), _FEW + _TIMES * written
    for name, body in growth.functions.items():
        growth.size(body, (name,))
    if inlined > most:
        raise ReadError(
            f"functions: expected at most {most} nodes when all calls among {written} "
            f"nodes are inlined, got {inlined}; inline them with onnx.inliner if you "
            "trust the file"
        )


def align_opsets(message: Any, tables: dict[int, Table], explain: Explain) -> Any:
    """The model with functions that can be inlined, in whatever opset each is written.

    Their nodes stay as they are where rules say what they mean in their own opset; else
    ONNX converts and inlines them, and their scopes are not kept. tables: the lists
    that were cut out of the message.
    """
    versions = {entry.domain: entry.version for entry in message.opset_import}
    odd = [
        (function, entry)
        for function in message.functions
        for entry in function.opset_import
        if versions.get(entry.domain, entry.version) != entry.version
    ]
    if not odd or _is_known(message, [function for function, _ in odd]):
        return message
    function, entry = odd[0]
    explain(
        f"function {function.name!r} uses opset {entry.version}, the model "
        f"{versions[entry.domain]}: converted; its scope is not kept"
    )
    write_back(message, tables)
    try:
        typed = native.infer_shapes(message, data_prop=False)  # the inliner needs types
        return native.inline_functions(typed)
    except native.NativeError as error:
        raise ReadError(
            f"function {function.name!r}: expected opset {versions[entry.domain]}, got "
            f"{entry.version}, and converting failed ({str(error).splitlines()[0]})"
        ) from error


def _is_known(message: Any, odd: list[Any]) -> bool:
    """Whether each node of these functions has a rule in the function's opset.

    And that of an old model, which would be converted as a whole.
    """
    declared = {entry.domain: entry.version for entry in message.opset_import}
    checked = [
        (function, {entry.domain: entry.version for entry in function.opset_import})
        for function in odd
    ]
    if declared.get("", NEWEST) < OLDEST:
        checked.append((message.graph, declared))
    own = {(f.domain, f.name) for f in message.functions}
    return all(
        (node.domain, node.op_type) in own
        or _is_native(node, versions.get(node.domain, declared.get(node.domain, 1)))
        for body, versions in checked
        for node in all_nodes(body)
    )


def _is_native(node: Any, version: int) -> bool:
    if version > NEWEST:
        return False
    if node.op_type == "Constant" and node.domain == "":
        return True  # it becomes an initializer
    rule = find(node.domain, node.op_type, version)
    names = {attribute.name for attribute in node.attribute}
    return rule is not None and names <= rule.attributes.keys()


def inline(model: ir.Model) -> None:
    """Replace every call by the function's body, in place."""
    if not model.functions:
        return
    for function in model.functions.values():
        _keep_versions(model, function)
    heights: dict[ir.OperatorIdentifier, int] = {}
    for name in model.functions:
        _height(model, name, heights)
    for function_name, function in model.functions.items():
        _mark_calls(model, function.all_nodes(), heights[function_name])
    _mark_calls(model, model.graph.all_nodes(), max(heights.values()) + 1)
    inline_calls(model)
    for node in model.graph.all_nodes():
        _write_scopes(node)


def _keep_versions(model: ir.Model, function: ir.Function) -> None:
    """Let the nodes of a function of another opset say their own."""
    known = model.opset_imports
    odd = {d: v for d, v in function.opset_imports.items() if known.get(d, v) != v}
    for node in function.all_nodes() if odd else ():
        if node.domain in odd and node.op_identifier() not in model.functions:
            node.version = odd[node.domain]
    function.opset_imports.update({domain: known[domain] for domain in odd})


def _height(
    model: ir.Model,
    name: ir.OperatorIdentifier,
    heights: dict[ir.OperatorIdentifier, int],
) -> int:
    """How many calls deep the function is."""
    if name not in heights:
        called = {node.op_identifier() for node in model.functions[name].all_nodes()}
        inner = sorted(called & model.functions.keys())
        heights[name] = 1 + max((_height(model, n, heights) for n in inner), default=0)
    return heights[name]


def _mark_calls(model: ir.Model, nodes: Any, height: int) -> None:
    """Leave on each call what its inlined nodes must know; inlining copies it."""
    unnamed: dict[str, int] = {}
    for node in nodes:
        if node.op_identifier() not in model.functions:
            continue
        if not node.name:
            count = unnamed[node.op_type] = unnamed.get(node.op_type, 0) + 1
            node.name = f"{node.op_type}_{count}"
        if not node.domain.startswith(_OPERATOR_LIBRARIES):
            node.metadata_props[f"{_CALL}{height:04}"] = repr((node.name, node.op_type))


def _write_scopes(node: ir.Node) -> None:
    keys = sorted((k for k in node.metadata_props if k.startswith(_CALL)), reverse=True)
    calls = [ast.literal_eval(node.metadata_props.pop(key)) for key in keys]
    if calls and SCOPES not in node.metadata_props:
        write_scope(node, tuple(Level(*call) for call in calls))
