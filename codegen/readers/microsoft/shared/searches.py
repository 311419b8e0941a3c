"""Search operators whose decoders are graphs: these become models of their own.

GreedySearch, BeamSearch and Sampling have a decoder, perhaps another one for prompts,
and perhaps an encoder, as attributes. `detach` makes a model of each, and the node
names it; what else a search must know of its decoder becomes attributes.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from burnish.codegen.errors import WHY_NOT
from burnish.codegen.readers.inlining.inline import bodies
from burnish.codegen.readers.microsoft.shared.bodies import DOMAIN, Unreadable

PARTS = "burnish.parts"
"""In a model's `meta`: the models of its searches, by the name of their modules."""

_PARTS = {"decoder": "decoder", "init_decoder": "first", "encoder": "encoder"}
"""Attributes with graphs, and what the rules call the modules."""
_INPUTS = {"GreedySearch": 7, "BeamSearch": 10, "Sampling": 9}
"""Inputs that the rules know; those behind them are of Whisper."""
_GPT, _T5 = 0, 1
_STATES = "encoder_hidden_states"


def parts_of(model: ir.Model) -> dict[str, ir.Model]:
    """The models of a model's searches, by the name of their modules."""
    found: dict[str, ir.Model] = model.meta.get(PARTS, {})
    return found


def detach(model: ir.Model) -> list[ir.Model]:
    """Make models of the graphs of searches; one that cannot be read says why."""
    parts: dict[str, ir.Model] = {}
    for node in list(model.graph):
        if node.domain != DOMAIN or node.op_type not in _INPUTS:
            continue
        if "decoder" not in node.attributes:
            continue
        try:
            known = _interface(node)
            held = [name for name in _PARTS if name in node.attributes]
            graphs = {name: _checked(node, model, name) for name in held}
        except Unreadable as reason:
            node.meta[WHY_NOT] = str(reason)
            continue
        for name, captured in graphs.items():
            graph = node.attributes.pop(name).as_graph()
            module = name if name not in parts else f"{name}_{len(parts)}"
            parts[module] = _model(model, graph, captured)
            node.attributes.add(ir.AttrString(_PARTS[name], module))
        node.attributes.pop("model_type", None)
        for name, value in known.items():
            kind = ir.AttrInt64s if isinstance(value, list) else ir.AttrInt64
            node.attributes.add(kind(name, value))
        node.domain = "burnish"
        model.opset_imports.setdefault("burnish", 1)
    model.meta[PARTS] = parts
    return list(parts.values())


def _interface(node: ir.Node) -> dict[str, Any]:
    """What a search must know of how its decoder is called."""
    if any(value is not None for value in node.inputs[_INPUTS[node.op_type] :]):
        raise Unreadable("whose decoder is Whisper's")
    if node.op_type == "Sampling" and len(node.outputs) > 1:
        raise Unreadable("whose second output, filtered logits, is asked for")
    decoder, kind = node.attributes["decoder"].as_graph(), _kind(node)
    if kind == _GPT:
        past, first = list(decoder.inputs[3:]), 3
        per_layer, heads, size = 1, 2, 4
    elif kind == _T5 and node.op_type == "BeamSearch" and "encoder" in node.attributes:
        takes_states = len(decoder.inputs) > 2 and decoder.inputs[2].name == _STATES
        first = 3 if takes_states else 2
        past = list(decoder.inputs[first:])
        per_layer, heads, size = 4, 1, 3
    else:
        raise Unreadable(f"whose model_type is {kind}")
    layers, presents = len(past) // per_layer, len(decoder.outputs) - 1
    if not layers or len(past) % per_layer or presents != layers * -(-per_layer // 2):
        raise Unreadable("whose decoder writes keys and values in place, as on CUDA")
    if past[0].dtype not in (None, ir.DataType.FLOAT):
        raise Unreadable(f"whose keys and values are {past[0].dtype}")
    known: dict[str, Any] = {
        "cache": [layers, _dim(past[0], heads), _dim(past[0], size)]
    }
    if kind == _T5:
        encoder = node.attributes["encoder"].as_graph()
        ids = decoder.inputs[0].shape
        known |= {
            "starts": int(len(encoder.inputs) == 3),
            "takes_states": int(first == 3),
            "takes_all": int(ids is None or len(ids) != 2 or ids[1] != 1),
        }
    return known


def _kind(node: ir.Node) -> int:
    held = node.attributes.get("model_type")
    return _GPT if held is None else held.as_int()


def _dim(value: ir.Value, axis: int) -> int:
    dim = value.shape[axis] if value.shape and len(value.shape) > axis else None
    if not isinstance(dim, int):
        raise Unreadable(f"whose decoder leaves open the sizes of {value.name!r}")
    return dim


def _checked(node: ir.Node, model: ir.Model, name: str) -> list[ir.Value]:
    """The weights of the graph around it that a graph reads."""
    graph = node.attributes[name].as_graph()
    own = {*graph.inputs, *(v for n in graph.all_nodes() for v in n.outputs)}
    own |= {v for n in graph.all_nodes() for g in bodies(n) for v in g.inputs}
    read = [v for n in graph.all_nodes() for v in n.inputs if v is not None]
    outer = dict.fromkeys(v for v in (*read, *graph.outputs) if v not in own)
    if any(v.name not in model.graph.initializers for v in outer):
        raise Unreadable(f"whose {name} reads what is computed around it")
    return list(outer)


def _model(model: ir.Model, graph: ir.Graph, captured: list[ir.Value]) -> ir.Model:
    """A graph with its own copies of the weights around it, as a model."""
    inputs, outputs, nodes = list(graph.inputs), list(graph.outputs), list(graph)
    around = {value.name for value in model.graph.inputs}
    for value in inputs:  # which were renamed, for the graph around has some of them
        name, _, number = (value.name or "").rpartition("_")
        if number.isdigit() and name in around:
            value.name = name
    inside = {*graph.all_nodes()}
    graph.outputs.clear()
    graph.inputs.clear()
    graph.remove(nodes)
    weights = []
    for value in captured:
        made = ir.Value(
            name=value.name,
            shape=value.shape,
            type=value.type,
            const_value=value.const_value,
        )
        made.metadata_props.update(value.metadata_props)
        made.meta.update(value.meta)
        for user, place in tuple(value.uses()):
            if user in inside:
                user.replace_input_with(place, made)
        outputs = [made if output is value else output for output in outputs]
        weights.append(made)
    whole = ir.Graph(
        inputs,
        outputs,
        nodes=nodes,
        initializers=weights,
        opset_imports=dict(model.opset_imports),
        name=graph.name,
    )
    made_model = ir.Model(
        whole,
        ir_version=model.ir_version or 10,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
    )
    made_model.meta.update(model.meta)
    return made_model
