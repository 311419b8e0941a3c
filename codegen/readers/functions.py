"""Model-local functions, inlined; where they stood stays known as scopes.

Each inlined node gets, in the form that PyTorch's exporter writes, the chain of calls
it came from: `pkg.torch.onnx.name_scopes` (call nodes' names, then its own) and
`pkg.torch.onnx.class_hierarchy` (function names, then its operator).
"""

from __future__ import annotations

import ast
from typing import Any

import onnx.inliner
import onnx.shape_inference
import onnx_ir as ir
from onnx_ir.passes import PreconditionError, common

from burnish.codegen.errors import Explain, ReadError

NAMES = "pkg.torch.onnx.name_scopes"
CLASSES = "pkg.torch.onnx.class_hierarchy"
_CALL = "burnish.call."
#: Functions of these domains are one operator each, not a module of the author's.
_OPERATOR_LIBRARIES = ("pkg.onnxscript", "pkg.torch", "onnxscript")


def align_opsets(message: Any, explain: Explain) -> Any:
    """Functions of another opset than the model's are converted while inlined."""
    versions = {entry.domain: entry.version for entry in message.opset_import}
    for function in message.functions:
        for entry in function.opset_import:
            if versions.get(entry.domain, entry.version) != entry.version:
                explain(
                    f"function {function.name!r} uses opset {entry.version}, the model "
                    f"{versions[entry.domain]}: converted; its scope is not kept"
                )
                try:
                    return _convert(message)
                except Exception as error:  # the C++ inliner raises many kinds
                    raise ReadError(
                        f"function {function.name!r}: expected opset "
                        f"{versions[entry.domain]}, got {entry.version}, and "
                        f"converting failed ({str(error).splitlines()[0]})"
                    ) from error
    return message


def _convert(message: Any) -> Any:
    typed = onnx.shape_inference.infer_shapes(message)  # the inliner needs types
    return onnx.inliner.inline_local_functions(typed, True)


def inline(model: ir.Model) -> None:
    """Replace every call by the function's body, in place."""
    if not model.functions:
        return
    heights: dict[ir.OperatorIdentifier, int] = {}
    for name in model.functions:
        _height(model, name, heights, ())
    for function_name, function in model.functions.items():
        _mark_calls(model, function.all_nodes(), heights[function_name])
    _mark_calls(model, model.graph.all_nodes(), max(heights.values()) + 1)
    try:
        common.InlinePass()(model)
    except (ValueError, KeyError, PreconditionError) as error:
        raise ReadError(f"functions cannot be inlined: {error}") from error
    model.functions.clear()
    for node in model.graph.all_nodes():
        _write_scopes(node)


def _height(
    model: ir.Model,
    name: ir.OperatorIdentifier,
    heights: dict[ir.OperatorIdentifier, int],
    above: tuple[ir.OperatorIdentifier, ...],
) -> int:
    """How many calls deep the function is; recursion is an error."""
    if name in above:
        chain = " -> ".join(call[1] for call in (*above[above.index(name) :], name))
        raise ReadError(f"expected functions without recursion, got {chain}")
    if name not in heights:
        called = {node.op_identifier() for node in model.functions[name].all_nodes()}
        heights[name] = 1 + max(
            (
                _height(model, other, heights, (*above, name))
                for other in sorted(called)
                if other in model.functions
            ),
            default=0,
        )
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
    if calls and NAMES not in node.metadata_props:
        names = [name for name, _ in calls]
        paths = [".".join(names[: depth + 1]) for depth in range(len(names))]
        node.metadata_props[NAMES] = repr(["", *paths, node.name or ""])
        node.metadata_props[CLASSES] = repr(
            ["Model", *(kind for _, kind in calls), node.op_type]
        )
