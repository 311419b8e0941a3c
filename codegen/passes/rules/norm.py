"""Fuse LayerNormalization and RMSNormalization from their means and roots."""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import axes_of
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rewritten,
    Rule,
    either,
    op,
)

x = Any("x")
eps = Any("eps")
scale = Any("scale")
bias = Any("bias")
_MEANS = ("ReduceMean", "GlobalAveragePool")


def _square(of: Pattern) -> Pattern:
    return either(of**2, of * of)


def _mean(of: Pattern) -> Pattern:
    return op("|".join(_MEANS), of)


def _root(variance: Pattern) -> Pattern:
    return either(op("Sqrt", variance), variance**0.5)


def _inverse(variance: Pattern) -> Pattern:
    """1 / sqrt(variance), in the ways that occur."""
    root = _root(variance)
    return either(op("Reciprocal", root), 1 / root, variance**-0.5)


def _divided(top: Pattern, variance: Pattern) -> Pattern:
    """top / sqrt(variance), in the ways that occur."""
    return either(top / _root(variance), top * _inverse(variance))


def _scaled(top: Pattern, variance: Pattern) -> Pattern:
    """top / sqrt(variance) * scale, in any order of the factors."""
    return either(
        _divided(top, variance) * scale,
        _divided(top * scale, variance),
        top * _divided(scale, variance),
    )


_MEAN = _mean(x)
_CENTRED = x - _MEAN
_APART = _mean(_square(x)) - _square(_MEAN)
"""The mean of the squares less the square of the mean, as Flax writes it."""
_VARIANCE = (
    either(_mean(_square(_CENTRED)), _APART, op("Max", _APART, 0), op("Relu", _APART))
    + eps
)
_LAYER = _divided(_CENTRED, _VARIANCE)
_SQUARES = _mean(_square(x)) + eps


def _moved(factor: Pattern) -> Pattern:
    """x times a factor, less the mean times the same, as TensorFlow writes it."""
    less = _MEAN * factor
    lowered = either(op("Neg", _MEAN) * factor, op("Neg", less))
    return either(
        x * factor + either(lowered + bias, bias - less),
        either(x * factor + lowered, x * factor - less) + bias,
        x * factor + bias - less,
    )


AFFINE = either(_scaled(_CENTRED, _VARIANCE) + bias, _moved(_divided(scale, _VARIANCE)))
"""(x - mean) / sqrt(variance + eps) * scale + bias, in the ways that occur."""


def axes_over(node: ir.Node) -> list[int] | None:
    """The axes of a reduction, negative and ascending, if they are known."""
    of = node.inputs[0]
    if node.op_type == "GlobalAveragePool":
        rank = 0 if of is None or of.shape is None else len(of.shape)
        return list(range(2 - rank, 0)) if rank > 2 else None
    axes = axes_of(node, g.integers)
    if axes is None or of is None or not any(axis >= 0 for axis in axes):
        return None if axes is None else sorted(axes)
    if of.shape is None:
        return None
    return sorted(a - len(of.shape) if a >= 0 else a for a in axes)


def mean_axes(found: Match) -> list[int] | str:
    """The axes of all means, negative and ascending, or why they do not fit."""
    nodes = [node for node in found.nodes if node.op_type in _MEANS]
    if any(g.attribute(node, "keepdims", 1) != 1 for node in nodes):
        return "a mean drops its dimension"
    means = [axes_over(node) for node in nodes]
    if not means[0]:
        return "the axes of a mean are not known"
    if any(axes != means[0] for axes in means):
        return "the means are over different axes"
    return means[0]


def is_small(value: ir.Value) -> bool:
    """Whether it is a number that may stand for epsilon."""
    number = g.scalar(value)
    return number is not None and 0 <= number < 1


def _are_last(axes: list[int]) -> bool:
    return axes == list(range(-len(axes), 0))


def _unfit(found: Match, axes: list[int]) -> str | None:
    """Why epsilon and the weights are not those of a norm over these axes."""
    if not is_small(found["eps"]):
        return "epsilon is no small constant"
    if "scale" not in found.values and not _are_last(axes):
        return f"the mean is over axes {axes}, not over the last ones"
    if "scale" not in found.values:
        return None
    source = found["x"].shape
    if source is None:
        return "how many axes there are is not known"
    if not _are_last(axes) and -len(source) in axes:
        return "the mean is over the first axis"
    wanted = [size if at - len(source) in axes else 1 for at, size in enumerate(source)]
    for name in ("scale", "bias"):
        if name not in found.values:
            continue
        tensor = g.constant(found[name])
        if tensor is None:
            return f"the {name} is no constant"
        shape = list(tensor.shape.numpy())
        if [1] * (len(source) - len(shape)) + shape != wanted:
            return f"the {name} has shape {tensor.shape}, the normalised axes {wanted}"
    return None


def _norm(found: Match, op_type: str, domain: str = "") -> Rewritten:
    axes = mean_axes(found)
    if isinstance(axes, str):
        return axes
    if (reason := _unfit(found, axes)) is not None:
        return reason
    made = list[ir.Node]()
    inputs, order = [found["x"]], _axes_last(found["x"], axes)
    if order is not None:
        made.append(ir.node("Transpose", inputs, {"perm": order}))
        inputs = [made[0].outputs[0]]
    for name in ("scale", "bias"):
        tensor = g.constant(found.values.get(name))
        if tensor is None:
            continue
        inputs.append(found[name])
        if list(tensor.shape) != (sizes := _sizes(found["x"], axes)):
            made += g.reshape_nodes(found[name], sizes)
            inputs[-1] = made[-1].outputs[0]
            inputs[-1].name = found[name].name  # a weight, not counted
    attributes: dict[str, float] = {"epsilon": found.number("eps")}
    if len(axes) != 1:
        attributes["axis"] = -len(axes)
    made.append(ir.node(op_type, inputs, attributes, domain=domain))
    if order is not None:
        back = {"perm": [order.index(axis) for axis in range(len(order))]}
        made.append(ir.node("Transpose", made[-1].outputs, back))
    return made


def _sizes(value: ir.Value, axes: list[int]) -> list[int]:
    """The sizes along the axes that weights give."""
    shape = g.unwrap(value.shape)
    return [size for axis in axes if isinstance(size := shape[axis], int)]


def _axes_last(value: ir.Value, axes: list[int]) -> list[int] | None:
    """The order of axes that has some of them last, if they are not."""
    if _are_last(axes):
        return None
    rank = len(g.unwrap(value.shape))
    over = [rank + axis for axis in axes]
    return [axis for axis in range(rank) if axis not in over] + over


_layer_norm = partial(_norm, op_type="LayerNormalization")
_rms_norm = partial(_norm, op_type="RMSNormalization")
_alone = partial(_layer_norm, domain="burnish")
_WITH_SCALE = _scaled(_CENTRED, _VARIANCE)

RULES = (
    Rule("LayerNormalization with scale and bias", AFFINE, _layer_norm),
    Rule("LayerNormalization with scale", _WITH_SCALE, _layer_norm),
    Rule("LayerNormalization without scale", _LAYER, _alone),
    Rule("RMSNormalization", _scaled(x, _SQUARES), _rms_norm),
)
