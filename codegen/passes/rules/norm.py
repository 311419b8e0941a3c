"""Fuse LayerNormalization and RMSNormalization from their means and roots."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes.graph import (
    attribute,
    constant,
    integers,
    reshape_nodes,
    scalar,
)
from burnish.codegen.passes.pattern import Any, Match, Pattern, Rule, either, op

x = Any("x")
eps = Any("eps")
scale = Any("scale")
bias = Any("bias")


def _square(of: Pattern) -> Pattern:
    return either(op("Pow", of, 2), op("Mul", of, of))


def _mean(of: Pattern, name: str) -> Pattern:
    return either(
        op("ReduceMean", of, name=name), op("GlobalAveragePool", of, name=name)
    )


def _inverse(variance: Pattern) -> Pattern:
    """1 / sqrt(variance), in the ways that occur."""
    root = either(op("Sqrt", variance), op("Pow", variance, 0.5))
    return either(op("Reciprocal", root), 1 / root, op("Pow", variance, -0.5))


def _divided(top: Pattern, variance: Pattern) -> Pattern:
    """top / sqrt(variance), in the ways that occur."""
    root = either(op("Sqrt", variance), op("Pow", variance, 0.5))
    return either(top / root, top * _inverse(variance))


_MEAN = _mean(x, "mean")
_CENTRED = x - _MEAN
_VARIANCE = _mean(_square(_CENTRED), "variance") + eps
_LAYER = _divided(_CENTRED, _VARIANCE)
_SQUARES = _mean(_square(x), "variance") + eps
_RMS = either(_divided(x, _SQUARES) * scale, x * (_inverse(_SQUARES) * scale))


def _moved(factor: Pattern) -> Pattern:
    """x times a factor and the mean times the same: what TensorFlow writes."""
    return x * factor + either(op("Neg", _MEAN) * factor + bias, bias - _MEAN * factor)


def axes_over(node: ir.Node) -> list[int] | None:
    """The axes of a reduction, negative and ascending, if they are known."""
    of = node.inputs[0]
    if node.op_type == "GlobalAveragePool":
        rank = 0 if of is None or of.shape is None else len(of.shape)
        return list(range(2 - rank, 0)) if rank > 2 else None
    axes = axes_of(node, integers)
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
    small = number is not None and 0 <= number < 1
    return None if small else "epsilon is no small constant"


def _check_weights(found: Match) -> str | None:
    reason = _check_means(found)
    if reason is not None:
        return reason
    axes = _normal_axes(found)
    width = len(axes)
    for name in ("scale", "bias"):
        if name not in found.values:
            continue
        tensor = constant(found[name])
        if tensor is None:
            return f"the {name} is no constant"
        shape = _shape(tensor, width)
        if len(shape) != width:
            return f"the {name} has shape {tensor.shape}, the mean {width} axes"
        source = found["x"].shape
        sizes = None if source is None else list(source)[-width:]
        if sizes != shape:
            return f"the {name} has shape {tensor.shape}, the normalised axes {sizes}"
    return None


def _shape(tensor: ir.TensorProtocol, width: int) -> list[int]:
    """A weight's shape without the axes of one element before the last `width`."""
    shape = list(tensor.shape.numpy())
    while len(shape) > width and shape[0] == 1:
        shape = shape[1:]
    return shape


def _node(domain: str, op_type: str, found: Match) -> list[ir.Node]:
    axes = _normal_axes(found)
    assert not isinstance(axes, str)
    inputs, made = [found["x"]], list[ir.Node]()
    for name in ("scale", "bias"):
        tensor = constant(found.values.get(name))
        if tensor is not None and len(tensor.shape) > len(axes):
            made += reshape_nodes(found[name], _shape(tensor, len(axes)))
            inputs.append(made[-1].outputs[0])
            inputs[-1].name = found[name].name  # a weight, not counted
        elif tensor is not None:
            inputs.append(found[name])
    attributes: dict[str, float] = {"epsilon": found.number("eps")}
    if len(axes) != 1:
        attributes["axis"] = axes[0]
    return [*made, ir.node(op_type, inputs, attributes, domain=domain)]


def _layer_norm(found: Match) -> list[ir.Node]:
    return _node("", "LayerNormalization", found)


RULES = (
    Rule(
        "LayerNormalization with scale and bias",
        either(_LAYER * scale + bias, _moved(_inverse(_VARIANCE) * scale)),
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
        _RMS,
        _check_weights,
        lambda found: _node("", "RMSNormalization", found),
        ("", "RMSNormalization", 23),
    ),
)
