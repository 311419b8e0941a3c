"""Datasets and batches: every item once, in an order that the seed decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import Tensor, data
from burnish.data.sources.mnist import normalized
from burnish.errors import InputError

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10)


def seen(loader):
    return [y for _, batch in loader for y in batch.tolist()]


@given(
    st.integers(0, 30), st.integers(1, 12), st.none() | st.integers(0, 9), st.booleans()
)
def test_every_item_comes_once(count, size, shuffle, drop_last):
    x, y = np.ones((count, 2)), np.arange(count)
    loader = data.batches((x, y), size, shuffle=shuffle, drop_last=drop_last)
    sizes = [len(batch) for _, batch in loader]
    found = seen(loader)
    assert len(sizes) == len(loader)
    assert all(n == size for n in sizes[: len(sizes) - (not drop_last)])
    assert len(set(found)) == len(found)
    assert len(found) == (count // size * size if drop_last else count)
    assert set(found) <= set(range(count))


def test_batches_are_tensors():
    x, y = next(iter(data.batches((X, Y), 4)))
    assert (type(x), type(y)) == (Tensor, Tensor)
    assert (x.shape, y.tolist()) == ((4, 2), [0, 1, 2, 3])


def test_a_seed_gives_one_order_for_each_epoch():
    one, two = (data.batches((X, Y), 3, shuffle=5) for _ in range(2))
    first, second = seen(one), seen(one)
    assert first != second
    assert [seen(two), seen(two)] == [first, second]
    two.epoch = 1
    assert seen(two) == second
    assert seen(data.batches((X, Y), 4, shuffle=6)) != first


def test_any_sequence_is_a_dataset():
    pairs = list(zip(X, Y, strict=True))
    x, y = next(iter(data.batches(pairs, 4)))
    assert (x.numpy() == X[:4]).all()
    assert y.tolist() == [0, 1, 2, 3]
    (x,) = next(iter(data.batches([1.0, 2.0, 3.0], 2)))
    assert x.tolist() == [1, 2]


def test_a_batcher_makes_what_the_model_wants():
    images = np.full((4, 28, 28), 255, np.uint8)
    loader = data.batches((images, Y[:4]), 2, batcher=normalized)
    x, _ = next(iter(loader))
    assert x.dtype == np.float32
    assert x.numpy().max() == pytest.approx((1 - 0.1307) / 0.3081)


def test_views_of_datasets():
    whole = data.ArrayDataset(X, Y)
    part = data.Subset(whole, [7, 3, 5])
    assert part[1][1] == 3
    assert data.Subset(part, [2, 0])[0][1] == 5
    assert seen(data.batches(part, 2)) == [7, 3, 5]
    mapped = data.MappedDataset(part, lambda item: (item[0] + 1, item[1] * 2))
    assert len(mapped) == 3
    assert seen(data.batches(mapped, 2)) == [14, 6, 10]
    assert seen(data.batches(data.Subset(list(zip(X, Y, strict=True)), [4]), 2)) == [4]


@pytest.mark.parametrize(("test", "count"), [(0.3, 3), (0.0, 0), (1.0, 10), (4, 4)])
def test_a_split_has_two_parts_with_nothing_in_common(test, count):
    whole = data.ArrayDataset(X, Y)
    one, two = data.train_test_split(whole, test, seed=3)
    assert (len(one), len(two)) == (10 - count, count)
    found = [item[1] for part in (one, two) for item in part]
    assert sorted(found) == list(range(10))
    again = data.train_test_split(whole, test, seed=3)[1]
    assert again.indices.tolist() == two.indices.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.batches((X, Y[:9]), 2), r"one length, got \[10, 9\]"),
        (lambda: data.ArrayDataset(), r"one length, got \[\]"),
        (lambda: data.batches((X, Y), 0), "a batch size from 1, got 0"),
        (lambda: data.train_test_split([1, 2], 1.5), "at most 2 items, got 1.5"),
        (lambda: data.train_test_split([1, 2], 3), "at most 2 items, got 3"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
