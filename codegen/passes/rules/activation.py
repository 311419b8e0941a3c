"""Fuse decomposed activations: Gelu, Swish, Mish, Softmax.

Those that they write case by case are in `shrink.py`.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, constant, scalar
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rule,
    Scalar,
    accept,
    either,
    op,
)

x = Any("x")
alpha = Any("alpha")


def _half_x_times(one_plus: Pattern) -> Pattern:
    """x/2 * (1 + f), however the author put the brackets."""
    return either(
        (x * 0.5) * one_plus,
        (x / 2) * one_plus,
        x * (0.5 * one_plus),
        (x * one_plus) * 0.5,
        (x * one_plus) / 2,
    )


_ERF = 1 + op("Erf", either(x / math.sqrt(2), x * math.sqrt(0.5)))
_CUBE = either(op("Pow", x, 3), (x * x) * x)
_C = 0.044715
_K = math.sqrt(2 / math.pi)
_CUBED = either((x * x) * _C, (x * _C) * x)
_TANH = 1 + op(
    "Tanh",
    either(
        (x + _CUBE * _C) * _K,
        (x * (1 + _CUBED)) * _K,
        (x * _K) * (1 + _CUBED),
    ),
)


def _node(op_type: str, found: Match, **attributes: float | str) -> ir.Node:
    return ir.Node(
        "",
        op_type,
        [found["x"]],
        [
            ir.AttrString(k, v) if isinstance(v, str) else ir.AttrFloat32(k, v)
            for k, v in attributes.items()
        ],
    )


def _gelu_tanh(found: Match) -> ir.Node:
    return _node("Gelu", found, approximate="tanh")


def _quick(found: Match) -> ir.Node:
    number = scalar(found["alpha"])
    assert number is not None
    return _node("Swish", found, alpha=number)


def _alpha_is_number(found: Match) -> str | None:
    known = scalar(found["alpha"]) is not None and found["x"] is not found["alpha"]
    return None if known else "the factor inside the sigmoid is not a constant"


def _leaves_softplus(found: Match) -> str | None:
    if found["x"].dtype == ir.DataType.DOUBLE:
        return "double precision tells it from x"
    above = scalar(found["above"])
    return (
        None if above is not None and above >= _LINEAR_FROM else "it begins too early"
    )


_LINEAR_FROM = 20
"""From here on x and softplus(x) are the same number of 32 bits."""
_STEEP = x * Scalar("beta")
_SOFT = op("Softplus", _STEEP) / Scalar("beta")


def _is_steep(found: Match) -> str | None:
    beta = scalar(found["beta"])
    if beta is None or beta <= 0:
        return "the factor is not above 0"
    return _leaves_softplus(found) if "above" in found.values else None


def _steep(found: Match) -> ir.Node:
    beta = scalar(found["beta"])
    assert beta is not None
    return ir.Node("burnish", "Softplus", [found["x"]], [ir.AttrFloat32("beta", beta)])


def _falls(found: Match) -> str | None:
    known = constant(found["slope"]) is not None
    return None if known else "the slope is no constant"


def _prelu(found: Match) -> list[ir.Node]:
    """The summand is slope * -x where x < 0."""
    slope = ir.Node("", "Neg", [found["slope"]])
    slope.outputs[0].name = found["slope"].name  # a weight, not counted
    return [slope, ir.Node("", "PRelu", [found["x"], slope.outputs[0]])]


def _slope_is_hard_swish(found: Match) -> str | None:
    node = found.named["sigmoid"]
    slope, shift = attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5)
    assert isinstance(slope, float)
    fits = math.isclose(slope, 1 / 6, rel_tol=1e-4) and shift == 0.5
    return None if fits else f"HardSigmoid's alpha and beta are {slope:g} and {shift}"


RULES = (
    Rule(
        "Gelu (erf form)",
        _half_x_times(_ERF),
        accept,
        lambda found: _node("Gelu", found),
        ("", "Gelu", 20),
    ),
    Rule(
        "Gelu (tanh form)",
        _half_x_times(_TANH),
        accept,
        _gelu_tanh,
        ("", "Gelu", 20),
    ),
    Rule(
        "Swish",
        x * op("Sigmoid", x),
        accept,
        lambda found: _node("Swish", found),
        ("", "Swish", 24),
    ),
    Rule(
        "Swish with a factor",
        x * op("Sigmoid", x * alpha),
        _alpha_is_number,
        _quick,
        ("", "Swish", 24),
    ),
    Rule(
        "Swish (exponential form)",
        x / (1 + op("Exp", op("Neg", x))),
        accept,
        lambda found: _node("Swish", found),
        ("", "Swish", 24),
    ),
    Rule(
        "Sigmoid",
        either(
            1 / (1 + op("Exp", op("Neg", x))),
            op("Reciprocal", 1 + op("Exp", op("Neg", x))),
        ),
        accept,
        lambda found: _node("Sigmoid", found),
        ("", "Sigmoid", 13),
    ),
    Rule(
        "HardSwish",
        x * op("HardSigmoid", x, name="sigmoid"),
        _slope_is_hard_swish,
        lambda found: _node("HardSwish", found),
        ("", "HardSwish", 14),
    ),
    Rule(
        "HardSwish (clip form)",
        either(
            (x * op("Clip", x + 3, 0, 6)) / 6,
            x * (op("Clip", x + 3, 0, 6) / 6),
            (x * op("Clip", x + 3, 0, 6)) * (1 / 6),
            x * (op("Clip", x + 3, 0, 6) * (1 / 6)),
        ),
        accept,
        lambda found: _node("HardSwish", found),
        ("", "HardSwish", 14),
    ),
    Rule(
        "HardSigmoid (clip form)",
        either(op("Clip", x + 3, 0, 6) / 6, op("Clip", x + 3, 0, 6) * (1 / 6)),
        accept,
        lambda found: _node("HardSigmoid", found, alpha=1 / 6),
        ("", "HardSigmoid", 6),
    ),
    Rule(
        "Mish",
        x * op("Tanh", op("Softplus", x)),
        accept,
        lambda found: _node("Mish", found),
        ("", "Mish", 18),
    ),
    Rule(
        "Softplus",
        op("Log", 1 + op("Exp", x)),
        accept,
        lambda found: _node("Softplus", found),
        ("", "Softplus", 1),
    ),
    Rule(
        "Softplus that is x where x is large",
        op("Where", op("Greater", x, Any("above")), x, op("Softplus", x)),
        _leaves_softplus,
        lambda found: _node("Softplus", found),
        ("", "Softplus", 1),
    ),
    Rule(
        "Softplus with a factor",
        either(
            op("Where", op("Greater", _STEEP, Any("above")), x, _SOFT),
            _SOFT,
        ),
        _is_steep,
        _steep,
        ("burnish", "Softplus", 1),
    ),
    Rule(
        "LogSigmoid",
        either(op("Log", op("Sigmoid", x)), op("Neg", op("Softplus", op("Neg", x)))),
        accept,
        lambda found: ir.Node("burnish", "LogSigmoid", [found["x"]]),
        ("burnish", "LogSigmoid", 1),
    ),
    Rule(
        "PRelu",
        op("Relu", x) + op("Relu", op("Neg", x)) * Any("slope"),
        _falls,
        _prelu,
        ("", "PRelu", 16),
    ),
    Rule(
        "Softsign",
        x / (1 + op("Abs", x)),
        accept,
        lambda found: _node("Softsign", found),
        ("", "Softsign", 1),
    ),
)
