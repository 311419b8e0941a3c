"""Buffers that are not persistent: in no state, their values by rule or by a file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from burnish import nn, serialize, store
from burnish.errors import InputError, RecordError
from burnish.nn.core import tables

MASK = np.tril(np.ones((3, 3), np.float32))


class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(2, 2)
        self.seen = nn.Buffer(nn.init.zeros, (2,))
        self.ids = nn.Buffer(nn.init.arange, (1, 5), "int64", persistent=False)
        self.mask = nn.Buffer(nn.init.loaded, (3, 3), persistent=False)


def net():
    made = Net()
    made.mask.assign(MASK)
    return made


SAVED = {"fc.weight", "fc.bias", "seen"}


def test_a_state_has_what_is_persistent():
    assert net().state_dict().keys() == SAVED
    assert set(store.collect(net())) == SAVED
    named = dict(net().named_buffers())
    assert named.keys() == {"seen", "ids", "mask"}
    Net().load_state_dict(net().state_dict())


@pytest.mark.parametrize("way", ["state", "store"])
def test_a_file_may_repeat_what_the_class_makes(way, tmp_path):
    """As files of older transformers have their position ids."""

    def load(ids):
        state = {**net().state_dict(), "ids": ids}
        if way == "state":
            return Net().load_state_dict(state)
        return store.load(Net(), state)

    load(np.arange(5)[None])
    for other in (np.arange(1, 6)[None], np.arange(6)[None]):
        with pytest.raises(RecordError, match=r"unexpected \['ids'\]"):
            load(other)


def by_file(path):
    net().save_file(path)
    return Net.from_file(path)


def by_store(path):
    store.save(net(), path)
    made = Net()
    store.load(made, path)
    return made


WAYS = {
    "file": by_file,
    "store": by_store,
    "bytes": lambda path: Net.from_bytes(net().to_bytes()),
    "pickle": lambda path: pickle.loads(pickle.dumps(net())),
    "copy": lambda path: net().train().valid(),
}


@pytest.mark.parametrize("way", WAYS)
def test_tables_travel(tmp_path, way):
    path = tmp_path / "net.safetensors"
    made = WAYS[way](path)
    np.testing.assert_array_equal(made.mask.data, MASK)
    np.testing.assert_array_equal(made.ids.data, [[0, 1, 2, 3, 4]])
    assert made.state_dict().keys() == SAVED
    made.save_file(path)  # and on from there
    assert serialize.load_file(path).keys() == SAVED
    np.testing.assert_array_equal(Net.from_file(path).mask.data, MASK)


def test_no_number_is_made_up():
    with pytest.raises(InputError, match=r"shape \(3, 3\).*Model.from_file"):
        Net().mask.numpy()


def test_a_file_without_tables_leaves_them(tmp_path):
    net().save_file(tmp_path / "net.pt")
    made = net().load_file(tmp_path / "net.pt")
    np.testing.assert_array_equal(made.mask.data, MASK)


def damaged(text):
    return [text[:-8], text[:20] + "*" + text[21:], "x" * 40, ""]


@pytest.mark.parametrize("number", range(4))
def test_damaged_tables_are_refused(tmp_path, number):
    text = damaged(tables.metadata(net())[tables.KEY])[number]
    path = tmp_path / "net.safetensors"
    serialize.save_file(net().state_dict(), path, {tables.KEY: text})
    with pytest.raises(RecordError, match="tables"):
        Net.from_file(path)


def test_tables_are_no_bomb(tmp_path):
    path = tmp_path / "net.safetensors"
    large = tables.packed({"mask": np.zeros(1 << 20, np.float32)})
    serialize.save_file(net().state_dict(), path, large)
    with pytest.raises(RecordError, match="got more"):
        Net.from_file(path)


def test_tables_of_another_size_are_refused(tmp_path):
    path = tmp_path / "net.safetensors"
    other = tables.packed({"mask": MASK[:2]})
    serialize.save_file(net().state_dict(), path, other)
    with pytest.raises(RecordError, match="the tables of Net"):
        Net.from_file(path)
