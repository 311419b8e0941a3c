"""LayerNormalization and RMSNormalization, put together again from their means."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, constant, integers, scalar
from burnish.codegen.passes.pattern import Any, Match, Pattern, Rule, either, op

x = Any("x")
eps = Any("eps")
scale = Any("scale")
bias = Any("bias")


def _square(of: Pattern) -> Pattern:
    return either(op("Pow", of, 2), op("Mul", of, of))


def _divided(top: Pattern, variance: Pattern) -> Pattern:
    """top / sqrt(variance), in the ways that occur."""
    root = either(op("Sqrt", variance), op("Pow", variance, 0.5))
    inverse = either(op("Reciprocal", root), 1 / root, op("Pow", variance, -0.5))
    return either(top / root, top * inverse)


_CENTRED = x - op("ReduceMean", x, name="mean")
_LAYER = _divided(_CENTRED, op("ReduceMean", _square(_CENTRED), name="variance") + eps)
_RMS = _divided(x, op("ReduceMean", _square(x), name="variance") + eps)


def axes_over(node: ir.Node) -> list[int] | None:
    """The axes of a reduction, negative and ascending, if they are known."""
    held, of = node.attributes.get("axes"), node.inputs[0]
    given = integers(node.inputs[1]) if len(node.inputs) > 1 else None
    axes = given if held is None else list(held.as_ints())
    if axes is None or of is None or not any(axis >= 0 for axis in axes):
        return None if axes is None else sorted(axes)
    if of.shape is None:
        return None
    return sorted(a - len(of.shape) if a >= 0 else a for a in axes)


def _normal_axes(found: Match) -> list[int] | str:
    """The axes of the means, negative and ascending, or why they do not fit."""
    result: list[int] = []
    for name in ("mean", "variance"):
        node = found.named.get(name)
        if node is None:
            continue
        axes = axes_over(node)
        if attribute(node, "keepdims", 1) != 1:
            return "a mean drops its dimension"
        if not axes:
            return "the axes of a mean are not known"
        if axes != list(range(-len(axes), 0)):
            return f"the mean is over axes {axes}, not over the last ones"
        if result and result != axes:
            return "the two means are over different axes"
        result = axes
    return result


def _check_means(found: Match) -> str | None:
    axes = _normal_axes(found)
    if isinstance(axes, str):
        return axes
    number = scalar(found["eps"])
    if number is None or not 0 <= number < 1:
        return "epsilon is no small constant"
    return None


def _check_weights(found: Match) -> str | None:
    reason = _check_means(found)
    if reason is not None:
        return reason
    axes = _normal_axes(found)
    width = len(axes)
    for name in ("scale", "bias"):
        value = found.values.get(name)
        if value is None:
            continue
        tensor = constant(value)
        if tensor is None:
            return f"the {name} is no constant"
        if len(tensor.shape) != width:
            return f"the {name} has shape {tensor.shape}, the mean {width} axes"
        source = found["x"].shape
        sizes = None if source is None else list(source)[-width:]
        if sizes != list(tensor.shape):
            return f"the {name} has shape {tensor.shape}, the normalised axes {sizes}"
    return None


def _node(domain: str, op_type: str, found: Match) -> ir.Node:
    inputs = [found[name] for name in ("x", "scale", "bias") if name in found.values]
    axes, number = _normal_axes(found), scalar(found["eps"])
    assert not isinstance(axes, str)
    assert number is not None
    attributes = [ir.AttrFloat32("epsilon", number)]
    if len(axes) != 1:
        attributes.append(ir.AttrInt64("axis", axes[0]))
    return ir.Node(domain, op_type, inputs, attributes)


def _layer_norm(found: Match) -> ir.Node:
    return _node("", "LayerNormalization", found)


RULES = (
    Rule(
        "LayerNormalization with scale and bias",
        _LAYER * scale + bias,
        _check_weights,
        _layer_norm,
        ("", "LayerNormalization", 17),
    ),
    Rule(
        "LayerNormalization with scale",
        _LAYER * scale,
        _check_weights,
        _layer_norm,
        ("", "LayerNormalization", 17),
    ),
    Rule(
        "LayerNormalization without scale",
        _LAYER,
        _check_means,
        lambda found: _node("burnish", "LayerNormalization", found),
        ("burnish", "LayerNormalization", 1),
    ),
    Rule(
        "RMSNormalization",
        _RMS * scale,
        _check_weights,
        lambda found: _node("", "RMSNormalization", found),
        ("", "RMSNormalization", 23),
    ),
)
