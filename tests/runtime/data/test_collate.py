"""Items to batches: fields, paddings, and batches by length."""

from itertools import chain
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import Tensor, data
from burnish.errors import DataError, InputError


class Pair(NamedTuple):
    x: np.ndarray
    name: str


ROWS = [{"x": np.arange(3.0) + i, "name": f"n{i}", "label": i} for i in range(5)]


def test_fields_keep_their_names():
    batch = next(iter(data.batches(ROWS, 2)))
    assert list(batch) == ["x", "name", "label"]
    assert batch["x"].shape == (2, 3)
    assert batch["name"] == ["n0", "n1"]
    assert (type(batch["label"]), batch["label"].tolist()) == (Tensor, [0, 1])


def test_named_tuples_and_nested_fields():
    pairs = [Pair(np.full(2, i), str(i)) for i in range(3)]
    batch = next(iter(data.batches(pairs, 3)))
    assert type(batch) is Pair
    assert (batch.x.shape, batch.name) == ((3, 2), ["0", "1", "2"])
    nested = [(np.zeros(2), {"y": i}) for i in range(4)]
    x, rest = next(iter(data.batches(nested, 4)))
    assert (x.shape, rest["y"].tolist()) == ((4, 2), [0, 1, 2, 3])


@pytest.mark.parametrize("collate", [None, data.padded()])
def test_tensors_in_items_are_stacked(collate):
    items = [(Tensor([1.0, i]), {"y": Tensor(i)}) for i in range(3)]
    x, rest = next(iter(data.batches(items, 3, collate=collate)))
    assert x.tolist() == [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    assert (type(rest["y"]), rest["y"].tolist()) == (Tensor, [0, 1, 2])


def test_an_array_is_a_dataset_of_its_rows():
    rows = np.arange(12.0).reshape(4, 3)
    (x,) = next(iter(data.batches(rows, 2, shuffle=None)))
    assert (x.numpy() == rows[:2]).all()


def test_a_batcher_of_rows_gets_the_dict():
    def pair(fields):
        return fields["x"].sum(axis=1), fields["label"]

    x, y = next(iter(data.batches(ROWS, 5, batcher=pair)))
    assert (x.shape, y.tolist()) == ((5,), [0, 1, 2, 3, 4])


def test_a_table_gives_columns():
    table = data.TableDataset({"a": np.arange(6), "b": list("abcdef")})
    assert table[2] == {"a": 2, "b": "c"}
    batch = next(iter(data.batches(data.Subset(table, [5, 1]), 2)))
    assert batch["a"].tolist() == [5, 1]
    assert batch["b"] == ["f", "b"]


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("dataset", [ROWS, data.ArrayDataset(np.arange(5))])
def test_a_part_without_items_has_empty_fields(dataset, parts):
    loaders = [data.batches(dataset, 4).part(rank, parts) for rank in range(parts)]
    last = [list(loader)[-1] for loader in loaders]
    fields = [list(b.values()) if isinstance(b, dict) else list(b) for b in last]
    assert [len(each[0]) for each in fields] == [4, 1, 0][:parts]
    assert {len(each) for each in fields} == {len(fields[0])}


@given(st.integers(0, 20), st.integers(1, 4), st.booleans(), st.booleans())
def test_a_length_is_what_comes(count, parts, drop, drop_last):
    strategy = data.FixedBatches(3, drop)
    loader = data.batches((np.arange(count),), strategy, drop_last=drop_last)
    for rank in range(parts if count else 0):
        part = loader.part(rank, parts)
        assert len(list(part)) == len(part)


def test_to_another_device():
    loader = data.batches((np.zeros(4),), 2).to("cpu:autodiff")
    assert str(next(iter(loader))[0].device) == "cpu:autodiff"


sizes = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1)


@given(sizes, st.integers(1, 4))
def test_padding_keeps_everything_and_fills_the_rest(shapes, multiple):
    found = data.padded(-1, multiple=multiple)([(np.ones(s), 7) for s in shapes])
    batch, numbers = found
    assert numbers.tolist() == [7] * len(shapes)
    assert all(side % multiple == 0 for side in batch.shape[1:])
    for row, shape in zip(batch, shapes, strict=True):
        assert (row[tuple(map(slice, shape))] == 1).all()
        assert (row == 1).sum() == np.prod(shape)
        assert set(np.unique(row)) <= {1.0, -1.0}


def test_lists_of_numbers_are_padded_too():
    rows = [{"ids": [1, 2, 3], "n": 3}, {"ids": [4], "n": 1}]
    batch = next(iter(data.batches(rows, 2, collate=data.padded())))
    assert batch["ids"].tolist() == [[1, 2, 3], [4, 0, 0]]


def test_unequal_fields_as_lists():
    items = [(np.zeros(n), n) for n in (1, 3)]
    x, n = next(iter(data.batches(items, 2, collate=data.as_lists)))
    assert [each.shape for each in x] == [(1,), (3,)]
    assert n == [1, 3]
    with pytest.raises(DataError, match=r"items 0, 1: .*one shape, got \(1,\) and"):
        next(iter(data.batches(items, 2)))


@given(
    st.lists(st.integers(1, 9), max_size=60), st.integers(1, 40), st.none() | st.just(3)
)
def test_batches_by_length_hold_every_item_once_and_the_limit(lengths, pool, shuffle):
    strategy = data.LengthBatches(lengths, 18, pool)
    loader = data.batches((np.arange(len(lengths)),), strategy, shuffle=shuffle)
    count = len(loader)
    found = [batch.tolist() for (batch,) in loader]
    assert len(found) == count
    assert sorted(chain.from_iterable(found)) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) * max(lengths[i] for i in batch) <= 18
    loader.epoch = 0
    assert [batch.tolist() for (batch,) in loader] == found


def test_like_lengths_come_together():
    lengths = np.random.default_rng(0).integers(1, 100, 2000)
    strategy = data.LengthBatches(lengths, 2000)
    loader = data.batches((lengths,), strategy, shuffle=1)
    waste = [1 - x.numpy().mean() / x.numpy().max() for (x,) in loader]
    assert np.mean(waste) < 0.05
    parts = [list(loader.part(rank, 2)) for rank in range(2)]
    assert len(parts[0]) == len(parts[1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.LengthBatches([1, 50], 18), "at most 18, got item 1 of length"),
        (lambda: data.LengthBatches([1], 18, 0), "a pool from 1, got 0"),
        (lambda: list(data.batches([1], data.LengthBatches([], 1))), "each of 1 items"),
        (lambda: data.padded(multiple=0), "a multiple from 1, got 0"),
        (lambda: data.padded()([np.zeros(1), np.zeros((1, 1))]), "ranks"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
