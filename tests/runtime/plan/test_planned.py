"""Plans of a file: the plain call's numbers, or the plain call and the reason."""

from __future__ import annotations

import copy
import importlib.util
import json
import pickle
import shutil
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from burnish import Tensor, nn, ops, planned
from burnish.errors import RecordError
from burnish.plan import store
from burnish.planned import words
from burnish.planned.file import KEY, opened
from burnish.serialize import open_weights, save_file
from tests.runtime.plan.checks import same

SOURCE = """
from burnish import nn, ops


class Model(nn.Module):
    def __init__(self, width=20):
        self.conv = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.scale = 1.0
        self.heads = [nn.Linear(width, 5), nn.Linear(width, 2)]

    @nn.accepts(x="float32[batch, 3, 8, 8]", way="int64[]")
    def forward(self, x, way):
        x = ops.relu(self.norm(self.conv(x))).mean(axis=(2, 3)) * self.scale
        if way == 1:
            return {"way": [self.heads[1](x), "one"]}
        y = ops.gelu(self.heads[0](x))
        return y, ops.where(x > 0.5, y.sum(), x.to("float64")).to("int64")
"""
X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
CALLS = [(X, 0), (X, 1), (X[:1], 0)]
_loaded = 0


def tensors(call):
    return [Tensor(call[0]), Tensor(np.array(call[1]))]


def imported(folder: Path):
    """The class as a process would import it that starts now."""
    global _loaded
    _loaded += 1
    spec = importlib.util.spec_from_file_location(f"net{_loaded}", folder / "net.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model, its weights, its plans and the library."""
    if store.library() is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("made")
    (folder / "net.py").write_text(SOURCE)
    weights = folder / "net.safetensors"
    imported(folder)().save_file(weights)
    model = imported(folder).from_file()
    plans = folder / "net.plan.safetensors"
    store.write(plans, model, [*map(tensors, CALLS)], weights)
    shutil.copy(store.library().file, folder / "net.kernels.so")
    return folder


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "net")
    return tmp_path / "net"


def plain(folder):
    """The model without its plans."""
    return imported(folder).from_file(folder / "net.safetensors")


@pytest.fixture
def ran(monkeypatch):
    """Counts the runs of plans."""
    count = []
    run = planned.model.Ready.__call__
    counted = lambda self, given: count.append(self) or run(self, given)  # noqa: E731
    monkeypatch.setattr(planned.model.Ready, "__call__", counted)
    return count


def test_every_planned_call_gives_the_plain_numbers(folder, ran):
    model, other = imported(folder).from_file(), plain(folder)
    for _ in range(2):
        for call in CALLS:
            same(model(*tensors(call)), other(*tensors(call)))
    same(model(X, way=1), other(X, 1))  # as nn.accepts takes them
    same(model(way=0, x=X), other(X, 0))
    assert len(ran) == 8
    assert planned.explain(model).count(" records") == 3
    assert "eagerly" not in planned.explain(model)


def test_parameters_come_from_the_weights_file_when_they_are_asked_for(folder, ran):
    model = imported(folder).from_file()
    assert model.conv.weight.is_lazy
    same(dict(model.state_dict()), dict(plain(folder).state_dict()))
    assert not model.conv.weight.is_lazy
    model(*tensors(CALLS[0]))
    assert len(ran) == 1


def other_shape(model):
    return Tensor(np.concatenate([X, X])), Tensor(np.array(0))


def other_value(model):
    return Tensor(X), Tensor(np.array(7))


def gradients(model):
    return Tensor(X).to("cpu:autodiff"), Tensor(np.array(0), device="cpu:autodiff")


@pytest.mark.parametrize("args", [other_shape, other_value])
def test_other_arguments_run_as_it_is(folder, ran, args):
    model, other = imported(folder).from_file(), plain(folder)
    same(model(*args(model)), other(*args(other)))
    assert not ran
    assert "1 x eagerly: no plan for float32" in planned.explain(model)
    model(*tensors(CALLS[0]))
    assert len(ran) == 1


def test_gradients_run_as_it_is(folder, ran):
    model = imported(folder).from_file().to("cpu:autodiff")
    made = model(*gradients(model))[0].sum().backward()
    assert model.conv.weight.grad(made).shape == model.conv.weight.shape
    model.to("cpu")(*tensors(CALLS[0]))
    assert not ran
    assert "norm.running_mean has other values" in planned.explain(model)


def test_a_model_that_comes_back_to_the_cpu_has_its_plans(folder, ran):
    model = imported(folder).from_file().to("cpu:autodiff").to("cpu")
    model(*tensors(CALLS[0]))
    assert len(ran) == 1


def assigned(model):
    model.conv.weight = model.conv.weight.numpy() * 2


def assigned_before_it_was_read(model):
    model.heads[0].bias.assign(np.ones(5, np.float32))


def replaced(model):
    model.heads[0] = nn.Linear(20, 5)


def a_setting(model):
    model.scale = 2.0


def quantized_input(model):
    model.on_input = nn.Identity()


def moved_apart(model):
    model.norm.running_mean.assign(np.ones(20, np.float32))


def another_forward(model):
    kind = type(model)
    before = kind.forward
    kind.forward = lambda self, x, way: before(self, x * 2, way)


CHANGES = [
    assigned,
    assigned_before_it_was_read,
    replaced,
    a_setting,
    quantized_input,
    moved_apart,
    another_forward,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("called", [False, True])
def test_a_changed_model_runs_as_it_is(folder, ran, change, called):
    model, other = imported(folder).from_file(), plain(folder)
    if called:
        model(*tensors(CALLS[0]))
    change(model)
    change(other)
    other.load_state_dict(model.state_dict())
    ran.clear()
    same(model(*tensors(CALLS[0])), other(*tensors(CALLS[0])))
    assert not ran
    assert "since it was loaded, " in planned.explain(model)


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.fork("cpu")],
)
def test_a_copy_has_no_plans(folder, ran, copied):
    model = imported(folder).from_file()
    again = copied(model)
    same(again(*tensors(CALLS[0])), plain(folder)(*tensors(CALLS[0])))
    assert not ran


def edited_source(folder):
    text = (folder / "net.py").read_text()
    (folder / "net.py").write_text(text.replace("gelu", "silu"))
    return "net.py has changed since it was planned"


def other_weights(folder):
    model = plain(folder)
    model.conv.replace("bias", nn.Param(np.ones(20, np.float32)))
    state = dict(model.state_dict())
    save_file(state, folder / "net.safetensors", {"other": "file"})
    return "net.safetensors has changed since it was planned"


def no_library(folder):
    (folder / "net.kernels.so").write_bytes(b"this is none")
    return "cannot be loaded"


def another_library(folder):
    changed(folder, library="0" * 64)
    return "is not the library that it was planned for"


@pytest.mark.parametrize(
    "spoil", [edited_source, other_weights, no_library, another_library]
)
def test_what_does_not_fit_is_reported_and_runs_as_it_is(
    folder, ran, capsys, spoil, monkeypatch
):
    of_kernels = sys.modules["burnish.kernels.library"]
    monkeypatch.setattr(of_kernels, "_found", {})
    monkeypatch.setattr(of_kernels, "_opened", [])
    reason = spoil(folder)
    model = imported(folder).from_file()
    same(model(*tensors(CALLS[0])), plain(folder)(*tensors(CALLS[0])))
    assert not ran
    assert reason in capsys.readouterr().err
    assert reason in planned.explain(model)


def test_kernels_that_are_off_are_not_loaded(folder, ran, monkeypatch, capsys):
    monkeypatch.setenv("BURNISH_KERNELS", "off")
    imported(folder).from_file()(*tensors(CALLS[0]))
    assert not ran
    assert "BURNISH_KERNELS is off" in capsys.readouterr().err


# --- damage ---


def changed(folder, **entries):
    """Write the plan file again with other words in its metadata."""
    path = folder / "net.plan.safetensors"
    held = open_weights(path)
    page = json.loads(held.metadata[KEY]) | entries
    state = {name: held[name].read().copy() for name in held}
    save_file(state, path, {**held.metadata, KEY: json.dumps(page)})


def spoiled(folder, name, change):
    path = folder / "net.plan.safetensors"
    held = open_weights(path)
    state = {name: held[name].read().copy() for name in held}
    change(state[name])
    save_file(state, path, held.metadata)


def a_reference_behind_its_array(records):
    columns = records[0, 2:6]
    columns[columns >= 0] += 1 << 39


def a_reference_to_no_array(records):
    records[0, 2] = 9999 << 40


def an_unknown_kind(records):
    records[0, 0] = 1000


def a_negative_reference(records):
    records[0, 2] = -2


@pytest.mark.parametrize(
    "change",
    [
        a_reference_behind_its_array,
        a_reference_to_no_array,
        an_unknown_kind,
        a_negative_reference,
    ],
)
def test_a_damaged_table_is_refused(folder, change):
    spoiled(folder, "0.records", change)
    with pytest.raises(RecordError, match=r"net\.plan\.safetensors: expected a plan"):
        imported(folder).from_file()


def constants_behind_the_end(slots):
    slots[slots[:, 0] > 0, 0] += 1 << 40


def smaller_arrays(slots):
    slots[1:, 1] = np.minimum(slots[1:, 1], 1)


@pytest.mark.parametrize("change", [constants_behind_the_end, smaller_arrays])
def test_arrays_that_are_not_there_are_refused(folder, change):
    spoiled(folder, "0.slots", change)
    with pytest.raises(RecordError, match=r"net\.plan\.safetensors: expected a plan"):
        imported(folder).from_file()


@pytest.mark.parametrize(
    "entries",
    [
        {"version": 99},
        {"plans": [{}]},
        {"plans": 3},
        {"names": [[]]},
        {"size": -1},
        {"class": None},
    ],
)
def test_damaged_words_are_refused(folder, entries):
    changed(folder, **entries)
    with pytest.raises(RecordError, match=r"net\.plan\.safetensors: expected"):
        imported(folder).from_file()


def test_a_weights_file_is_no_plan_file(folder):
    shutil.copy(folder / "net.safetensors", folder / "net.plan.safetensors")
    with pytest.raises(RecordError, match="expected a plan file"):
        imported(folder).from_file()


def test_a_file_that_ends_too_early_is_refused(folder):
    path = folder / "net.plan.safetensors"
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(RecordError):
        imported(folder).from_file()


def test_constants_are_aligned(folder):
    entries = opened(folder / "net.plan.safetensors")
    assert entries.constants.ctypes.data % 64 == 0
    assert all(
        (plan.slots[plan.slots[:, 0] >= 0, 0] % 64 == 0).all() for plan in entries.plans
    )


NARROW = """
import numpy as np

from burnish import nn, ops


class Model(nn.Module):
    def __init__(self):
        self.floor = nn.Buffer(np.zeros((1, 4), "float32").astype("bfloat16"))

    @nn.accepts(x="bfloat16[rows, 4]")
    def forward(self, x):
        return ops.maximum(x, self.floor), x.to("float32")
"""


def test_arrays_of_ml_dtypes_keep_their_kind(made, tmp_path, ran):
    x = Tensor(np.array([[-1, 0.5, 2, -3]], ml_dtypes.bfloat16))
    wanted = np.array([[0, 0.5, 2, 0]], np.float32), x.data.astype(np.float32)
    weights = tmp_path / "net.safetensors"
    (tmp_path / "net.py").write_text(NARROW)
    imported(tmp_path)().save_file(weights)
    store.write(
        tmp_path / "net.plan.safetensors",
        imported(tmp_path).from_file(),
        [[x]],
        weights,
    )
    shutil.copy(made / "net.kernels.so", tmp_path)
    got = imported(tmp_path).from_file()(x)
    assert len(ran) == 1
    assert [y.dtype for y in got] == ["bfloat16", "float32"]
    same([y.data.astype(np.float32) for y in got], [*wanted])


INDEXED = """
from burnish import Tensor, nn, ops


class Model(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(3, 3)

    @nn.accepts(x="float32[batch, 4, 3]")
    def forward(self, x):
        x = self.fc(x)
        rows = Tensor.arange(x.shape[0], dtype="int64", device=self.device)
        return x[rows.unsqueeze(1), ops.top_k(x.max(-1), 2)[1]]
"""


def test_an_index_that_follows_from_sizes_is_in_the_file(made, tmp_path, ran):
    x = Tensor(np.random.default_rng(1).random((5, 4, 3), np.float32))
    weights = tmp_path / "net.safetensors"
    (tmp_path / "net.py").write_text(INDEXED)
    imported(tmp_path)().save_file(weights)
    model = imported(tmp_path).from_file()
    store.write(tmp_path / "net.plan.safetensors", model, [[x]], weights)
    shutil.copy(made / "net.kernels.so", tmp_path)
    got = imported(tmp_path).from_file()
    same(got(x), model(x))
    assert len(ran) == 1, planned.explain(got)


@pytest.mark.parametrize(
    "array",
    [np.arange(6).reshape(2, 3), np.zeros((0, 2), np.int32), np.array([True, False])],
)
def test_words_hold_arrays_of_integers(array):
    entry = json.loads(json.dumps(words.encoded(array, lambda value: None)))
    read = words.read(entry, lambda number: None)
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    assert (read == array).all()


@pytest.mark.parametrize(
    "entry",
    [
        ["array", ["float32", [1], [0.5]]],
        ["array", ["int64", [2], [1]]],
        ["array", ["complex64", [1], [1]]],
        ["array", ["int64", [1], [None]]],
    ],
)
def test_words_of_other_arrays_are_refused(entry):
    with pytest.raises((TypeError, ValueError)):
        words.read(entry, lambda number: None)


# --- what cannot be stored ---


class Large(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)[:, np.zeros(1 << 17, np.int64)]


class Classes(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return ops.zip_map(self.fc(x), ["no", "yes"])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Large, "getitem eagerly.*an array of 131072 int64"),
        (Classes, "no word for what zip_map makes of"),
    ],
)
def test_what_cannot_be_stored_is_named(kind, reason, made, tmp_path):
    weights = tmp_path / "net.safetensors"
    model = kind()
    model.save_file(weights)
    with pytest.raises(store.Unstorable, match=reason):
        store.write(
            tmp_path / "net.plan.safetensors",
            model,
            [[Tensor(X[0, 0, :2, :4])]],
            weights,
        )
    assert not (tmp_path / "net.plan.safetensors").exists()
