"""Shape transfer functions give the shapes that NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.codegen.symbolic import transfer
from burnish.codegen.symbolic.known import KNOWN, Checked
from burnish.codegen.symbolic.sizes import Size, parse
from burnish.codegen.symbolic.terms import Term

shapes = st.lists(st.integers(1, 4), max_size=4)
few = st.lists(st.integers(1, 2), min_size=1, max_size=4)


def known(shape):
    return [Size.number(size) for size in shape]


def plain(shape):
    return tuple(size.value for size in shape)


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


def equal(sizes):
    """Whether all pairs of sizes that must be equal are."""
    return all(one == other for one, other in sizes.pairs)


@given(few, few)
def test_matmul(a, b):
    sizes = Checked()
    found = transfer.matmul(known(a), known(b), sizes)
    try:
        after = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        assert not equal(sizes)
    else:
        assert equal(sizes)
        assert plain(found) == after


@given(st.lists(few, min_size=1, max_size=3), st.integers(-4, 3))
def test_concat(several, axis):
    sizes = Checked()
    found = transfer.concat([known(shape) for shape in several], axis, sizes)
    try:
        after = np.concatenate([np.zeros(shape) for shape in several], axis).shape
    except (ValueError, np.exceptions.AxisError):
        assert found is None or not equal(sizes)
    else:
        assert equal(sizes)
        assert plain(found) == after


@given(shapes, st.lists(st.integers(0, 2), min_size=1, max_size=3), st.integers(-4, 3))
def test_split(shape, parts, axis):
    sizes = Checked()
    found = transfer.split(known(shape), axis, known(parts), sizes)
    if found is None:
        assert not -len(shape) <= axis < len(shape)
        return
    assert equal(sizes) == (sum(parts) == shape[axis])
    if equal(sizes):
        after = np.split(np.zeros(shape), np.cumsum(parts)[:-1], axis)
        assert list(map(plain, found)) == [part.shape for part in after]


@given(few, shapes, st.integers(-4, 3))
def test_places(shape, at, axis):
    places, zeros = np.zeros(at, int), np.zeros(shape)
    if -len(shape) <= axis < len(shape):
        after = np.take(zeros, places, axis).shape
        assert tuple(transfer.gather(shape, at, axis)) == after
    if len(shape) > 1:
        after = zeros[places, np.zeros(1, int)].shape
        found = transfer.index(known(shape), [known(at), known([1])], KNOWN)
        assert plain(found) == after
        assert (
            tuple(transfer.gather_nd(shape, [*at, 2], 2)) == zeros[places, places].shape
        )


def test_layers():
    sizes, channels = Checked(), parse("c")
    x = [parse("n"), channels, *known([8, 8])]
    found = transfer.conv(x, known([6, 4, 3, 3]), 2, known([5, 7]), sizes)
    assert found == [parse("n"), *known([6, 5, 7])]
    assert sizes.pairs == [(channels, Size.number(8))]
    q, k, v = (known(shape) for shape in ([2, 5, 4], [2, 7, 4], [2, 7, 3]))
    assert plain(transfer.attention(q, k, v, sizes)) == (2, 5, 3)
    assert transfer.attention(q, k, v[:1], sizes) is None
    assert transfer.conv(x, v[:1], 1, [], sizes) is None


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
