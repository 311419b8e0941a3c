"""Infer recurrent layers, their cells, and MultiheadAttention."""

from __future__ import annotations

import re

from burnish.codegen.infer.layers.leaves import Around, Leaf, shape
from burnish.codegen.infer.tree import Node

_KINDS = {1: "RNN", 3: "GRU", 4: "LSTM"}
_LAYER = re.compile(r"weight_ih_l(\d+)(_reverse)?")
_HEAD = 64


def recurrent(node: Node, around: Around) -> Leaf | None:
    """LSTM, GRU or RNN by the rows of their gates."""
    rows, width = shape(node, "weight_ih_l0")
    inner = shape(node, "weight_hh_l0")
    down = shape(node, "weight_hr_l0")
    if len(inner) != 2 or inner[0] != rows:
        return None
    hidden = down[1] if len(down) == 2 else inner[1]
    kind = _KINDS.get(rows // hidden if hidden and not rows % hidden else 0)
    found = [match for match in map(_LAYER.fullmatch, node.tensors) if match]
    layers = 1 + max(int(match[1]) for match in found)
    both = any(match[2] for match in found)
    if kind is None or len(found) != layers * (2 if both else 1):
        return None
    peepholes = {key for key in node.tensors if key.startswith("peephole")}
    if peepholes and (
        kind != "LSTM"
        or peepholes != {match[0].replace("weight_ih", "peephole") for match in found}
        or {shape(node, key) for key in peepholes} != {(3 * hidden,)}
    ):
        return None
    options: dict[str, object] = {"num_layers": layers} if layers > 1 else {}
    if "bias_ih_l0" not in node.tensors:
        options["bias"] = False
    if both:
        options["bidirectional"] = True
    if peepholes:
        options["peepholes"] = True
    if len(down) == 2:
        options["proj_size"] = down[0]
    gives = (down[0] if len(down) == 2 else hidden) * (2 if both else 1)
    return Leaf(kind, (width, hidden), options, width, gives, 0)


def cell(node: Node, around: Around) -> Leaf | None:
    """One step of a recurrent layer."""
    rows, width = shape(node, "weight_ih")
    inner = shape(node, "weight_hh")
    if len(inner) != 2 or inner[0] != rows or not inner[1]:
        return None
    kind = _KINDS.get(rows // inner[1] if not rows % inner[1] else 0)
    if kind is None:
        return None
    options = {} if "bias_ih" in node.tensors else {"bias": False}
    return Leaf(f"{kind}Cell", (width, inner[1]), options, width, inner[1], 0)


def attention(node: Node, around: Around) -> Leaf | None:
    """MultiheadAttention; weights do not tell its heads."""
    out = node.children.get("out_proj")
    if list(node.children) != ["out_proj"] or out is None:
        return None
    width = shape(out, "weight")[:1]
    if len(width) != 1 or shape(out, "weight") != width * 2:
        return None
    dim = width[0]
    options: dict[str, object] = {}
    if "in_proj_bias" not in node.tensors:
        options["bias"] = False
    if "bias_k" in node.tensors:
        options["add_bias_kv"] = True
    if "in_proj_weight" not in node.tensors:
        for name in ("k", "v"):
            size = shape(node, f"{name}_proj_weight")
            if len(size) != 2:
                return None
            if size[1] != dim:
                options[f"{name}dim"] = size[1]
        if not options.keys() & {"kdim", "vdim"}:
            return None
    elif shape(node, "in_proj_weight") != (3 * dim, dim):
        return None
    heads = usual_heads(dim)
    around.doubt(node.path, f"num_heads={heads}, which weights do not tell")
    return Leaf("MultiheadAttention", (dim, heads), options, dim, dim, 0)


def usual_heads(dim: int) -> int:
    """Heads of 64 where that goes; else the most of 8, 4, 2 that divide."""
    if dim % _HEAD == 0:
        return dim // _HEAD
    return next(count for count in (8, 4, 2, 1) if dim % count == 0)
