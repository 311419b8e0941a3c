"""Normalize the Graph: inline functions, sort nodes, unique names, lift constants."""

from __future__ import annotations

import graphlib
import logging
from collections.abc import Container
from typing import Any

import onnx_ir as ir
from onnx_ir.passes import common

from burnish._files.budget import Budget
from burnish.codegen.errors import Explain, ReadError
from burnish.codegen.names import authorship
from burnish.codegen.readers.checks import recurrent, schema
from burnish.codegen.readers.inlining import functions
from burnish.codegen.readers.inlining.inline import bodies
from burnish.codegen.readers.tables import fill_in
from burnish.codegen.readers.weight_constants import (
    store_filled,
    weights_among_constants,
)
from burnish.codegen.readers.wire import Table
from burnish.codegen.weights import constants


def normalize(
    message: Any,
    explain: Explain,
    tables: dict[int, Table],
    budget: Budget | None = None,
) -> ir.Model:
    """Build the Graph from a clean ModelProto and bring it into normal form.

    tables: the lists that were cut out of the message. budget: for weights that the
    file says in a few bytes; without it they stay nodes.
    """
    functions.check_growth(message)
    model = build(functions.align_opsets(message, tables, explain))
    fill_in(model, tables)
    functions.inline(model)
    _check_values(model)
    _sort(model)
    _drop_weight_inputs(model, explain)
    common.NameFixPass()(model)
    if budget is not None:
        store_filled(model, budget)
    lift_constants(model, weights_among_constants(model))
    schema.check(model)
    recurrent.check(model)
    return model


def build(message: Any) -> ir.Model:
    """The Graph of a ModelProto; whatever is wrong with it is a ReadError."""
    logging.getLogger("onnx_ir.serde").setLevel(logging.ERROR)
    try:
        model: ir.Model = ir.from_proto(message)
    except Exception as error:  # onnx-ir raises many kinds for a damaged model
        raise ReadError(
            f"expected a valid ONNX graph, got {_first_line(error)}; "
            "export the model again"
        ) from error
    return model


def lift_constants(model: ir.Model, weights: Container[ir.Node] = ()) -> None:
    """Make every Constant, of bodies too, an initializer of the main graph.

    All are marked but those that are weights.
    """
    names = {
        node.outputs[0].name
        for node in model.graph.all_nodes()
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx")
        if node not in weights and not constants.makes_weight(node)
    }
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.LiftSubgraphInitializersToMainGraphPass()(model)
    for name, value in model.graph.initializers.items():
        if name in names:
            constants.mark(value)


def _first_line(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}".split("\n")[0]


def _check_values(model: ir.Model) -> None:
    """Check that every value read has a producer, and that the graph has outputs."""
    if not model.graph.outputs:
        raise ReadError("expected a graph with outputs, got none; export it again")
    missing = []
    for graph in model.graphs():
        for node in graph:
            missing += [
                f"node {node.name or node.op_type!r} reads {value.name!r}"
                for value in node.inputs
                if value is not None and _is_loose(value)
            ]
        missing += [f"output {v.name!r}" for v in graph.outputs if _is_loose(v)]
    if missing:
        raise ReadError(
            "expected every value to be produced by a node, an input or an "
            f"initializer; nothing produces: {'; '.join(missing)}"
        )


def _is_loose(value: ir.Value) -> bool:
    return (
        value.producer() is None
        and not value.is_graph_input()
        and not value.is_initializer()
    )


def _sort(model: ir.Model) -> None:
    try:
        model.graph.sort()
    except ValueError:
        cycle = _cycle(model)
        raise ReadError(
            "expected a graph without cycles, got one through nodes "
            + " -> ".join(repr(node.name or node.op_type) for node in cycle)
        ) from None


def _cycle(model: ir.Model) -> list[ir.Node]:
    nodes: dict[ir.Node, set[ir.Node]] = {}
    for graph in model.graphs():
        for node in graph:
            before = {v.producer() for v in node.inputs if v is not None}
            inner = {n for body in bodies(node) for n in body}
            nodes[node] = {other for other in before if other is not None} | inner
    try:
        graphlib.TopologicalSorter(nodes).prepare()
    except graphlib.CycleError as error:
        cycle: list[ir.Node] = error.args[1]
        return cycle
    return []


def _drop_weight_inputs(model: ir.Model, explain: Explain) -> None:
    """Inputs that have an initializer are weights; old files list all of them."""
    defaults = [v.name for v in model.graph.inputs if v.is_initializer()]
    if defaults and model.ir_version >= 4:
        rest = f" and {len(defaults) - 1} more" if len(defaults) > 1 else ""
        explain(
            "inputs with a value in the file are weights, not arguments: "
            f"{defaults[0]!r}{rest}"
        )
    common.RemoveInitializersFromInputsPass()(model)


def round_lengths(model: ir.Model) -> None:
    """Mark Resizes of a PyTorch file: aligned corners are those of whole elements.

    ONNX's cases count scale * n elements, PyTorch and onnxruntime the result's.
    """
    if not authorship.is_by_pytorch(model.producer_name):
        return
    for node in model.graph.all_nodes():
        mode = node.attributes.get_string("coordinate_transformation_mode", "")
        if (node.domain, node.op_type, mode) == ("", "Resize", "align_corners"):
            node.attributes.add(ir.AttrInt64("whole_lengths", 1))
