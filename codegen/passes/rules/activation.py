"""Fuse decomposed activations: Gelu, Swish, Mish, Softplus.

Those that exporters write case by case are in `piecewise.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from burnish.codegen.passes import graph as g
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rewritten,
    Rule,
    Scalar,
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
_CUBE = either(x**3, (x * x) * x)
_ONE_PLUS_POWER = 1 + op("Exp", op("Neg", x))
_CLIPPED = op("Clip", x + 3, 0, 6)
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


def _form(
    name: str,
    pattern: Pattern,
    op_type: str,
    unfit: Callable[[Match], str | None] | None = None,
    **attributes: float | str,
) -> Rule:
    """The rule for one way to write an activation of x; unfit: why it is none."""

    def made(found: Match) -> Rewritten:
        reason = None if unfit is None else unfit(found)
        return reason or ir.node(op_type, [found["x"]], attributes)

    return Rule(name, pattern, made)


def _quick(found: Match) -> Rewritten:
    alpha = g.scalar(found["alpha"])
    if alpha is None or found["x"] is found["alpha"]:
        return "the factor inside the sigmoid is not a constant"
    return ir.node("Swish", [found["x"]], {"alpha": alpha})


def _leaves_softplus(found: Match) -> str | None:
    if found["x"].dtype == ir.DataType.DOUBLE:
        return "double precision tells it from x"
    above = g.scalar(found["above"])
    late = above is not None and above >= _LINEAR_FROM
    return None if late else "it begins too early"


_LINEAR_FROM = 20
"""From here on x and softplus(x) are the same number of 32 bits."""
_STEEP = x * Scalar("beta")
_SOFT = op("Softplus", _STEEP) / Scalar("beta")


def _steep(found: Match) -> Rewritten:
    beta = found.number("beta")
    if beta <= 0:
        return "the factor is not above 0"
    reason = _leaves_softplus(found) if "above" in found.values else None
    return reason or ir.node("Softplus", [found["x"]], {"beta": beta}, domain="burnish")


def _prelu(found: Match) -> Rewritten:
    """The summand is slope * -x where x < 0."""
    if g.constant(found["slope"]) is None:
        return "the slope is no constant"
    slope = ir.Node("", "Neg", [found["slope"]])
    slope.outputs[0].name = found["slope"].name  # a weight, not counted
    return [slope, ir.Node("", "PRelu", [found["x"], slope.outputs[0]])]


def _slope_is_hard_swish(found: Match) -> str | None:
    node = found.named["sigmoid"]
    slope, shift = (
        node.attributes.get_float(name, usual)
        for name, usual in (("alpha", 0.2), ("beta", 0.5))
    )
    fits = math.isclose(slope, 1 / 6, rel_tol=1e-4) and shift == 0.5
    return None if fits else f"HardSigmoid's alpha and beta are {slope:g} and {shift}"


_SWISH = x * op("Sigmoid", x * alpha)
_SIGMOID = either(1 / _ONE_PLUS_POWER, op("Reciprocal", _ONE_PLUS_POWER))
_HARD_SWISH = either(
    (x * _CLIPPED) / 6,
    x * (_CLIPPED / 6),
    (x * _CLIPPED) * (1 / 6),
    x * (_CLIPPED * (1 / 6)),
)
_HARD_SIGMOID = either(_CLIPPED / 6, _CLIPPED * (1 / 6))
_LOG_SIGMOID = either(
    op("Log", op("Sigmoid", x)), op("Neg", op("Softplus", op("Neg", x)))
)
_ABOVE = op("Greater", x, Any("above"))
_PRELU = op("Relu", x) + op("Relu", op("Neg", x)) * Any("slope")

RULES = (
    _form("Gelu (erf form)", _half_x_times(_ERF), "Gelu"),
    _form("Gelu (tanh form)", _half_x_times(_TANH), "Gelu", approximate="tanh"),
    _form("Swish", x * op("Sigmoid", x), "Swish"),
    Rule("Swish with a factor", _SWISH, _quick),
    _form("Swish (exponential form)", x / _ONE_PLUS_POWER, "Swish"),
    _form("Sigmoid", _SIGMOID, "Sigmoid"),
    _form(
        "HardSwish",
        x * op("HardSigmoid", x, name="sigmoid"),
        "HardSwish",
        _slope_is_hard_swish,
    ),
    _form("HardSwish (clip form)", _HARD_SWISH, "HardSwish"),
    _form("HardSigmoid (clip form)", _HARD_SIGMOID, "HardSigmoid", alpha=1 / 6),
    _form("Mish", x * op("Tanh", op("Softplus", x)), "Mish"),
    _form("Softplus", op("Log", 1 + op("Exp", x)), "Softplus"),
    _form(
        "Softplus that is x where x is large",
        op("Where", _ABOVE, x, op("Softplus", x)),
        "Softplus",
        _leaves_softplus,
    ),
    Rule(
        "Softplus with a factor",
        either(op("Where", op("Greater", _STEEP, Any("above")), x, _SOFT), _SOFT),
        _steep,
    ),
    Rule(
        "LogSigmoid",
        _LOG_SIGMOID,
        lambda found: ir.Node("burnish", "LogSigmoid", [found["x"]]),
    ),
    Rule("PRelu", _PRELU, _prelu),
    _form("Softsign", x / (1 + op("Abs", x)), "Softsign"),
)
