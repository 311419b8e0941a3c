"""An equation that is a matrix product is one, and attention by equations a call."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form, stays

W = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)

PRODUCTS = {
    "bij,bjk->bik": ("2,3,4", "2,4,5", "x @ z"),
    "bij,bkj->bik": ("2,3,4", "2,5,4", "x @ z.mT"),
    "bji,bjk->bik": ("2,4,3", "2,4,5", "x.mT @ z"),
    "bhid,bhjd->bhij": ("2,2,3,4", "2,2,5,4", "x @ z.mT"),
    "bhij,bhid->bhjd": ("2,2,3,4", "2,2,3,5", "x.mT @ z"),
    "bij,bki->bkj": ("2,3,4", "2,5,3", "z @ x"),
    "ij,jk->ik": ("3,4", "4,5", "x @ z"),
    "btd,dk->btk": ("2,3,4", "4,5", "x @ z"),
}

OTHERS = {
    "an axis is summed twice": ("bij,bij->b", "2,3,4", "2,3,4"),
    "an outer product": ("bi,bj->bij", "2,3", "2,4"),
    "axes change places": ("bihd,bjhd->bhij", "2,3,2,4", "2,5,2,4"),
    "two axes are summed": ("bijk,bjkl->bil", "2,3,4,2", "2,4,2,5"),
    "the batch lies inside": ("ibd,bjd->bij", "3,2,4", "2,5,4"),
    "nothing is summed": ("bi,bi->bi", "2,3", "2,3"),
}


@pytest.mark.parametrize("equation", PRODUCTS)
def test_product(equation):
    x, z, line = PRODUCTS[equation]
    model = form(f'y = Einsum<equation="{equation}">(x, z)', x=x, z=z)
    assert "einsum" not in becomes(model, f"return {line}")


@pytest.mark.parametrize("case", OTHERS)
def test_other_equations_stay(case):
    equation, x, z = OTHERS[case]
    model = form(f'y = Einsum<equation="{equation}">(x, z)', x=x, z=z)
    assert f'"{equation}"' in stays(model, " @ ")


def test_layer_by_equation():
    text = 'y = Einsum<equation="btd,dk->btk">(x, w)'
    becomes(
        form(text, weights={"w": W}, x="2,3,4"),
        "self.linear = nn.Linear(4, 6, bias=False)",
    )


def test_attention_by_equations():
    text = """c = Constant<value_float=0.5>()
    p = Einsum<equation="bhid,bhjd->bhij">(q, k) s = Mul(p, c) w = Softmax(s)
    y = Einsum<equation="bhij,bhjd->bhid">(w, v)"""
    model = form(text, q="2,3,5,4", k="2,3,7,4", v="2,3,7,4")
    becomes(model, "return ops.scaled_dot_product_attention(q, k, v)")
