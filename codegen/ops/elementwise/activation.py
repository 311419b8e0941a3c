"""Activations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from burnish.codegen.ops.rule.expressions import (
    call,
    infix,
    known,
    layer,
    number,
    owned,
    tensor,
)
from burnish.codegen.ops.rule.registry import NodeContext, Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import (
    ACTIVATION,
    BROADCAST,
    ELEMENTWISE,
    NONE,
    OWN_SHAPE,
    RANDOM,
    REPARAMETRIZATION,
    SAME_SHAPE,
    Trait,
    Twin,
)
from burnish.codegen.ops.rule.words import integers_kept, is_scalar, made, named
from burnish.codegen.ops.shapes import elementwise
from burnish.codegen.program import (
    Attribute,
    Conditional,
    Expression,
    Literal,
    Method,
    Name,
    Weight,
)

_activation = partial(onnx_op, traits=ELEMENTWISE | ACTIVATION)
_called = partial(called, traits=ELEMENTWISE | ACTIVATION)
_bounded = partial(called, traits=ELEMENTWISE | ACTIVATION | REPARAMETRIZATION)

_ALPHA = {"alpha": ""}
_FORM = {"approximate": "approximate"}
_SELU = {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}

_called("Relu", "relu", "X", since=6, layer="ReLU")
_bounded("Sigmoid", "sigmoid", "X", since=6, layer="Sigmoid", role="gate")
_bounded("Tanh", "tanh", "input", since=6, layer="Tanh")
_bounded("Softplus", "softplus", "X", layer="Softplus")
_called("Softsign", "softsign", "input", layer="Softsign")
_called("HardSwish", "hard_swish", "X", layer="Hardswish")
_called("Mish", "mish", "X", layer="Mish")
_called("Elu", "elu", "X", {"alpha": 1.0}, since=6, layer="ELU", names=_ALPHA)
_called("Celu", "celu", "X", {"alpha": 1.0}, layer="CELU", names=_ALPHA)
_called("Selu", "selu", "X", _SELU, since=6, layer="SELU")
_called("ThresholdedRelu", "thresholded_relu", "X", {"alpha": 1.0})
_called("Gelu", "gelu", "X", {"approximate": "none"}, layer="GELU", names=_FORM)
_called("LogSigmoid", "log_sigmoid", "x", domain="burnish", layer="LogSigmoid")


@_activation(
    "LeakyRelu", since=6, twin=Twin("leaky_relu", "LeakyReLU", {"negative_slope": ""})
)
def leaky_relu(X: Expression, *, alpha: float = 0.01) -> Result:
    return call("leaky_relu", X, negative_slope=alpha)


@_activation("HardSigmoid", since=6)
def hard_sigmoid(X: Expression, *, alpha: float = 0.2, beta: float = 0.5) -> Result:
    if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5:
        return layer("Hardsigmoid", (), {}, {}, X)
    return call("hard_sigmoid", X, alpha=alpha, beta=beta)


@_activation("Swish", twin=Twin("silu", "SiLU"))
def swish(X: Expression, *, alpha: float = 1.0) -> Result:
    if alpha == 1:
        return call("silu", X)
    return call("swish", X, alpha=alpha)


@_activation("Shrink")
def shrink(input_: Expression, *, lambd: float = 0.5, bias: float = 0.0) -> Result:
    return integers_kept(call("shrink", input_, lambd=lambd, bias=bias), input_.dtype)


@onnx_op("PRelu", since=7, traits=BROADCAST | ACTIVATION, weights=(1,))
def prelu(X: Expression, slope: Expression) -> Result:
    if isinstance(slope, Weight) and owned(slope) and slope.trained:
        count = math.prod(slope.shape)
        spatial = None if X.rank is None else (1,) * (X.rank - 2)
        by_channel = spatial is not None and slope.shape[-1 - len(spatial) :] == (
            count,
            *spatial,
        )
        if count == 1 or by_channel:
            weight = slope.changed((count,), lambda w: w.reshape(-1))
            return layer("PReLU", (), {"num_parameters": count}, {"weight": weight}, X)
    if is_scalar(slope):
        return call("leaky_relu", X, negative_slope=number(slope))
    return call("prelu_of", X, slope)


def _softmax(
    op_type: str, function: str, traits: Trait = NONE, layer: str = "", role: str = ""
) -> None:
    """Declare an operator along an axis, and the rows that it had before opset 13."""
    twin = Twin(function, layer, {"axis": "dim"}) if layer else None

    def of_rows(input_: Expression, *, axis: int = 1) -> Result:
        return _of_rows(function, input_, axis)

    def along_an_axis(input_: Expression, *, axis: int = -1) -> Result:
        return call(function, input_, axis=last(input_, axis))

    of_rows.__name__ = along_an_axis.__name__ = function
    onnx_op(op_type)(of_rows)
    declare = onnx_op(op_type, 13, traits=SAME_SHAPE | traits, twin=twin, role=role)
    declare(along_an_axis)


def last(x: Expression, axis: int) -> int:
    """The last axis is -1, as people write it."""
    return -1 if x.rank is not None and axis == x.rank - 1 else axis


def _of_rows(operator: str, x: Expression, axis: int) -> Result:
    """Before opset 13 everything from `axis` on was one row."""
    if x.rank is not None and axis % x.rank == x.rank - 1:
        return call(operator, x, axis=-1)
    rows = Method(x, "flatten", (Literal(axis),))
    shape = Attribute(x, "shape")
    return Method(call(operator, rows, axis=-1), "reshape", (shape,))


_softmax("Softmax", "softmax", REPARAMETRIZATION, layer="Softmax", role="weights")
_softmax("LogSoftmax", "log_softmax", layer="LogSoftmax")
_softmax("Hardmax", "hardmax")


@onnx_op("SwiGLU", traits=BROADCAST)
def swiglu(A: Expression, B: Expression, *, alpha: float = 1.0) -> Result:
    gate = call("silu", A) if alpha == 1 else call("swish", A, alpha=alpha)
    return infix("*", gate, B)


@onnx_op("Dropout", since=7)
def dropout_of_ratio(
    data: Expression, *, ratio: float = 0.5, node: NodeContext
) -> Result:
    return _dropout(data, ratio, None, node)


@onnx_op("Dropout", since=12, traits=ELEMENTWISE | RANDOM, shapes=elementwise.same_all)
def dropout(
    data: Expression,
    ratio: Expression | None = None,
    training_mode: Expression | None = None,
    *,
    seed: int | None = None,
    node: NodeContext,
) -> Result:
    """A layer that acts in training, unless the caller decides."""
    p = 0.5 if ratio is None else number(ratio)
    decided = training_mode is not None and known(training_mode) is None
    return _dropout(data, p, training_mode if decided else None, node)


def _dropout(
    data: Expression, p: Any, training: Expression | None, node: NodeContext
) -> Result:
    def drop(x: Expression) -> Expression:
        if training is None and not isinstance(p, Expression):
            return layer("Dropout", (), {"p": p}, {}, x)
        asked = Name("self.training") if training is None else training
        return Conditional(call("dropout", x, p=p), asked, x)

    if len(node.outputs) == 1:
        return drop(data)
    shape = Attribute(tensor(data), "shape")
    ones = named(node, made("ones", shape, dtype=data.dtype), "ones")
    kept = named(node, drop(ones), "kept", data.dtype, data.shape)
    return infix("*", data, kept), infix("!=", kept, Literal(0))


@_activation("Softplus", domain="burnish")
def softplus_with_factor(x: Expression, *, beta: float) -> Result:
    return layer("Softplus", (), {"beta": beta}, {}, x)


@onnx_op(
    "GLU", domain="burnish", traits=OWN_SHAPE, twin=Twin("glu", "GLU", {"axis": "dim"})
)
def glu(x: Expression, *, axis: int) -> Result:
    return call("glu", x, axis=axis)
