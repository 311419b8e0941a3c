"""Laws of views: every index once, parts make the whole, windows are slices."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import data
from burnish.errors import InputError

counts = st.integers(0, 40)
seeds = st.integers(0, 5)


def items(dataset):
    return [dataset[i] for i in range(len(dataset))]


@given(counts, seeds)
def test_shuffled_has_every_item_once(count, seed):
    found = data.ShuffledDataset(range(count), seed)
    assert sorted(items(found)) == list(range(count))
    assert items(found) == items(data.ShuffledDataset(range(count), seed))


@given(counts, st.integers(0, 90), seeds)
def test_sampled_without_replacement_is_even(count, size, seed):
    if size and not count:
        return
    found = data.SamplerDataset(range(count), size, replacement=False, seed=seed)
    assert len(found) == size
    often = np.bincount(np.array(items(found), int), minlength=count)
    assert often.size == count
    if count:
        assert often.max() - often.min() <= 1


@given(st.integers(1, 40), st.integers(0, 90), seeds)
def test_sampled_with_replacement(count, size, seed):
    found = data.SamplerDataset(range(count), size, seed=seed)
    again = data.SamplerDataset(range(count), size, seed=seed)
    assert len(found) == size
    assert set(items(found)) <= set(range(count))
    assert items(found) == items(again)


def test_a_share_is_drawn():
    assert len(data.SamplerDataset(range(10), 0.5)) == 5
    assert len(data.SamplerDataset(range(10), 2.5, replacement=False)) == 25
    drawn = items(data.SamplerDataset(range(10), 10_000))
    assert np.bincount(drawn).min() > 800


@given(counts, st.integers(1, 12))
def test_parts_make_the_whole(count, number):
    parts = data.split(range(count), number)
    assert len(parts) == number
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert [item for part in parts for item in items(part)] == list(range(count))
    chunks = data.split_chunks(range(count), number)
    assert all(len(chunk) == number for chunk in chunks[:-1])
    assert items(data.ConcatDataset(*chunks)) == list(range(count))


@given(st.lists(st.lists(st.integers(), max_size=5), max_size=5))
def test_concatenated_is_one_behind_the_other(lists):
    whole = [item for each in lists for item in each]
    found = data.ConcatDataset(*lists)
    assert items(found) == whole
    assert [found[i - len(whole)] for i in range(len(whole))] == whole


@given(counts, st.integers(1, 8), st.integers(1, 8))
def test_windows_are_slices(count, size, stride):
    values = list(range(100, 100 + count))
    found = data.WindowsDataset(values, size, stride)
    slices = [values[i : i + size] for i in range(0, count, stride)]
    slices = [each for each in slices if len(each) == size]
    assert [window.tolist() for window in items(found)] == slices
    arrays = data.ArrayDataset(np.array(values), np.arange(count) * 2)
    pairs = items(data.WindowsDataset(arrays, size, stride))
    assert [x.tolist() for x, _ in pairs] == slices
    assert all((x - 100 == y / 2).all() for x, y in pairs)


def test_windows_of_rows_and_pictures():
    rows = [{"x": np.full(2, i), "name": str(i)} for i in range(4)]
    window = data.WindowsDataset(rows, 3)[1]
    assert window["x"].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert window["name"] == ["1", "2", "3"]


@given(st.integers(1, 30), st.data())
def test_a_subset_is_the_items_named(count, draw):
    indices = draw.draw(st.lists(st.integers(-count, count - 1)))
    found = data.Subset(range(count), indices)
    assert items(found) == [range(count)[i] for i in indices]
    again = data.Subset(found, range(len(found)))
    assert items(again) == items(found)


def test_views_ask_for_what_they_need_alone():
    asked = []
    mapped = data.MappedDataset(range(100), lambda item: asked.append(item) or item)
    view = data.ConcatDataset(data.ShuffledDataset(mapped), data.Subset(mapped, [7]))
    assert asked == []
    assert view[100] == 7
    assert asked == [7]


def test_fake_items_are_the_same_every_time():
    fake = data.FakeDataset(5, lambda rng: (rng.normal(size=3), rng.integers(9)), 4)
    one, two = fake[3], fake[-2]
    assert (one[0] == two[0]).all()
    assert len({item[0][0] for item in items(fake)}) == 5
    x, y = next(iter(data.batches(fake, 5)))
    assert (x.shape, y.shape) == ((5, 3), (5,))
    with pytest.raises(IndexError, match="an index below 5, got 5"):
        fake[5]


@pytest.mark.parametrize(
    "view",
    [
        data.ShuffledDataset(range(5)),
        data.SamplerDataset(range(5), 3),
        data.ConcatDataset([1], [2]),
        data.WindowsDataset(range(5), 2),
    ],
    ids=lambda view: type(view).__name__,
)
def test_views_travel(view):
    again = pickle.loads(pickle.dumps(view))
    assert list(map(str, items(again))) == list(map(str, items(view)))
    with pytest.raises(IndexError, match="got 99"):
        view[99]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.Subset([1, 2], [0, 2]), "Subset: expected indices below 2, got"),
        (lambda: data.Subset([1, 2], [0.5]), "expected whole numbers .* got float64"),
        (lambda: data.SamplerDataset([], 3), "items to draw from, got 3 of 0"),
        (lambda: data.SamplerDataset([1], -1), "a size from 0"),
        (lambda: data.WindowsDataset([1], 0), "a size and a stride from 1, got 0 and"),
        (lambda: data.split([1], 0), "a number of parts from 1, got 0"),
        (lambda: data.split_chunks([1], 0), "a size from 1, got 0"),
        (lambda: data.FakeDataset(-1, int), "a length from 0, got -1"),
        (lambda: data.TableDataset({"a": [1], "b": []}), r"one length, got {'a': 1"),
        (lambda: data.TableDataset({}), "columns of one length, got {}"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


class Doubled(data.Subset):
    def __getitem__(self, index):
        return 2 * super().__getitem__(index)


def test_a_view_of_ones_own_is_asked_itself():
    (found,) = next(iter(data.batches(Doubled(range(10), [4, 2]), 2)))
    assert found.tolist() == [8, 4]
