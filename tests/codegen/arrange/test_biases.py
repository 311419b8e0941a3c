"""Layers whose matrices are counted are in the modules that their biases name."""

from __future__ import annotations

import pytest

from burnish.codegen.arrange.scopes.biases import place_by_biases
from burnish.codegen.arrange.scopes.group_kind import module_scope
from burnish.codegen.program import Flow
from tests.harness.program_text import parsed

ROUNDED = """
weight w "val_3": float32[4, 4]
weight b "blocks.0.fc.bias": float32{shape}
weight s "": fixed float32[1]
weight z "": fixed int8[1]
input x: float32[batch, 4]
a: float32[batch, 4] = nn.Linear(4, 4, bias=False, weight=w)(x)
q: float32[batch, 4] = nn.FakeQuantize(scales=s, zero_points=z)(a)
y: float32[batch, 4] = q + b
{more}
return {result}
output "y": float32[batch, 4]
"""


@pytest.mark.parametrize(
    ("shape", "more", "result", "found"),
    [
        ("[4]", "", "y", ["blocks.0.fc"] * 3),
        ("[4]", "t: float32[batch, 4] = a + y", "t", [""] * 4),
        ("[1, 4]", "", "y", [""] * 3),
    ],
    ids=["a bias", "a product with two readers", "no vector"],
)
def test_a_product_is_where_the_bias_behind_a_rounding_is(
    shape: str, more: str, result: str, found: list[str]
) -> None:
    body = parsed(ROUNDED.format(shape=shape, more=more, result=result)).body
    place_by_biases(body.statements, Flow(body))
    scopes = [".".join(e.name for e in s.scope) for s in body.statements]
    assert scopes == found


@pytest.mark.parametrize(
    ("bias", "found"),
    [("blocks.0.fc.bias", "blocks.0.fc"), ("val_4", ""), ("my scope/b.bias", "")],
)
def test_a_bias_names_the_module_where_the_matrix_has_no_name(
    bias: str, found: str
) -> None:
    text = f"""
weight w "val_3": float32[4, 4]
weight b "{bias}": float32[4]
input x: float32[batch, 4]
y: float32[batch, 4] = nn.Linear(4, 4, weight=w, bias=b)(x)
return y
output "y": float32[batch, 4]
"""
    (statement,) = parsed(text).body.statements
    assert ".".join(level.name for level in module_scope(statement)) == found
