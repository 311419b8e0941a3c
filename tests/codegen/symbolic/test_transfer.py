"""Shape transfer functions give the shapes that NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.terms import Term

shapes = st.lists(st.integers(1, 4), max_size=4)


@given(shapes, st.randoms())
def test_transposed(shape, random):
    order = random.sample(range(len(shape)), len(shape))
    after = np.zeros(shape).transpose(order).shape
    assert tuple(transfer.transposed(shape, order)) == after
    assert transfer.transposed([*shape, 2], order) is None


@given(shapes, st.lists(st.integers(-4, 3), max_size=3, unique=True))
def test_reduced(shape, axes):
    try:
        kept = np.zeros(shape).sum(axis=tuple(axes), keepdims=True).shape
    except ValueError:  # an axis twice or out of range
        return
    after = np.zeros(shape).sum(axis=tuple(axes)).shape
    assert tuple(transfer.replaced(shape, axes, lambda _: 1)) == kept
    assert tuple(transfer.squeezed(shape, axes)) == after


@given(shapes, st.lists(st.integers(-4, 3), min_size=1, max_size=3))
def test_unsqueezed(shape, axes):
    try:
        after = np.expand_dims(np.zeros(shape), tuple(axes)).shape
    except np.exceptions.AxisError:
        return
    except ValueError:  # an axis twice
        assert transfer.unsqueezed(shape, axes, lambda: 1) is None
        return
    assert tuple(transfer.unsqueezed(shape, axes, lambda: 1)) == after


@given(st.lists(st.lists(st.sampled_from((1, 3)), max_size=4), min_size=1, max_size=3))
def test_broadcast(several):
    assert tuple(transfer.broadcast(several, max)) == np.broadcast_shapes(
        *map(tuple, several)
    )


@pytest.mark.parametrize(
    ("one", "other", "product"),
    [
        (Term(("a",), 3), Term(("b",), 2), Term(("a", "b"), 6)),
        (Term(("a",), over=2), Term(("b",), 4), Term(("a", "b"), 2)),
        (Term(("a",), over=2), Term((), 3), None),
        (Term(("a",), over=2), Term(("b",), over=2), None),
    ],
)
def test_a_product_of_terms_is_divided_by_its_factors(one, other, product):
    assert one * other == product
    if product is not None and other.over == 1:
        assert product.divided(other) == one
        assert Term(("c",)).divided(other) is None
