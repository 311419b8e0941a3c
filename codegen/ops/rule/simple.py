"""Declare rules of one call: `ops.exp(x)`, `a + b`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Any

from burnish.codegen.ops.rule.expressions import call, infix
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import Twin
from burnish.codegen.program import Expression


def called(
    op_type: str,
    function: str,
    operand: str,
    attributes: Mapping[str, float | str] | None = None,
    *,
    layer: str = "",
    names: Mapping[str, str] | None = None,
    **declared: Any,
) -> None:
    """Declare an operator of one input that is a function of `burnish.ops`.

    operand: the input's name in the schema. attributes: the function's options of the
    same names, with the specification's defaults. layer: its twin in `burnish.nn`;
    names: of the function's options there, as `Twin` has them. declared: what `onnx_op`
    takes.
    """
    defaults = attributes or {}
    if layer:
        declared["twin"] = Twin(function, layer, names or {})

    def rule(x: Expression, **given: Any) -> Result:
        return call(function, x, **{k: given.get(k, v) for k, v in defaults.items()})

    words = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=value)
        for name, value in defaults.items()
    ]
    _declare(op_type, rule, function, [operand], words, declared)


def infixed(op_type: str, sign: str, **declared: Any) -> None:
    """Declare an operator of inputs A and B that is one of Python's."""

    def rule(a: Expression, b: Expression) -> Result:
        return infix(sign, a, b)

    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op_type).lower()
    _declare(op_type, rule, name, ["A", "B"], [], declared)


def _declare(
    op_type: str,
    rule: Any,
    name: str,
    inputs: list[str],
    words: list[Parameter],
    declared: dict[str, Any],
) -> None:
    """Declare a rule under a name, its signature that of the operator's schema."""
    operands = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in inputs]
    rule.__name__, rule.__signature__ = name, Signature([*operands, *words])
    onnx_op(op_type, **declared)(rule)
