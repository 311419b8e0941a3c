"""Remove nodes, optional outputs and initializers that nothing reads."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from burnish.codegen.errors import Explain


def drop_dead(model: ir.Model, explain: Explain) -> bool:
    """Inputs and outputs of the model stay, even unused ones."""
    for value in model.graph.inputs:
        if not value.uses() and not value.is_graph_output():
            explain(f"input {value.name!r} is read by nobody; it stays an argument")
    return bool(common.RemoveUnusedNodesPass()(model).modified)
