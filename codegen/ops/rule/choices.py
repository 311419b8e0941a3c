"""Attributes with a fixed set of strings, and their permitted values."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.errors import AttributeNotHonouredError

_ANY = "*"
_REDUCTIONS = ("none", "add", "mul", "max", "min")
_CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    (_ANY, "auto_pad"): ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("Cast", "round_mode"): ("up", "down", "nearest"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "mode"): ("linear", "bilinear", "nearest", "cubic", "bicubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("ImageDecoder", "pixel_format"): ("RGB", "BGR", "Grayscale"),
    ("Momentum", "mode"): ("standard", "nesterov"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("ScatterElements", "reduction"): _REDUCTIONS,
    ("ScatterND", "reduction"): _REDUCTIONS,
    ("TensorScatter", "mode"): ("linear", "circular"),
    ("CastMap", "cast_to"): ("TO_FLOAT", "TO_INT64", "TO_STRING"),
    ("CastMap", "map_form"): ("DENSE", "SPARSE"),
}


def check_choices(node: ir.Node, where: str) -> None:
    """Raise AttributeNotHonouredError for a word that the operator does not have."""
    for name, attribute in node.attributes.items():
        allowed = _CHOICES.get((node.op_type, name)) or _CHOICES.get((_ANY, name))
        if allowed is not None and (got := attribute.as_string()) not in allowed:
            expected = f"one of {', '.join(allowed)}"
            raise AttributeNotHonouredError(where, node.op_type, name, expected, got)
