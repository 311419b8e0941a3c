"""Thresholds of passes, both sides: which false positive each of them prevents."""

from __future__ import annotations

import pytest

from tests.codegen.passes.forms import becomes, form, stays

GELU = """s = Constant<value_float={}>() h = Constant<value_float=0.5>()
    o = Constant<value_float=1.0>() d = Div(x, s) e = Erf(d) p = Add(e, o)
    m = Mul(x, p) y = Mul(m, h)"""


@pytest.mark.parametrize("root", [1.4142, 1.415])
def test_a_root_of_few_digits_is_the_root_of_two(root):
    becomes(form(GELU.format(root), x="2,4"), "return ops.gelu(x)", rtol=3e-3)


@pytest.mark.parametrize("root", [1.4125, 1.416])
def test_another_factor_is_another_function(root):
    """Else an author's own activation would be computed as GELU."""
    stays(form(GELU.format(root), x="2,4"), "gelu")
