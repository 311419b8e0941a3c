"""Activations that exporters spell out: Gelu, Swish, HardSwish, Mish, Softplus."""

from __future__ import annotations

import math

import onnx_ir as ir

from burnish.codegen.passes.graph import attribute, scalar
from burnish.codegen.passes.pattern import (
    Any,
    Match,
    Pattern,
    Rule,
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
_TANH = 1 + op(
    "Tanh",
    either(
        (x + _CUBE * _C) * _K,
        (x * (1 + (x * x) * _C)) * _K,
        (x * _K) * (1 + (x * x) * _C),
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
    return None if above is not None and above >= 20 else "it begins too early"


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
)
