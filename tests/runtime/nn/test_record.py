"""Records of modules: files, bytes, embedded weights, and what does not fit."""

import base64
import importlib
import sys
import textwrap
import zipfile

import ml_dtypes
import numpy as np
import pytest

from burnish import Tensor, nn, serialize, store
from burnish.errors import RecordError
from burnish.nn import init


class Tied(nn.Module):
    """One table used twice, and a counter."""

    def __init__(self, dtype="float32", made=init.ones):
        self.embed = nn.Linear(3, 4, bias=False, dtype=dtype)
        self.head = nn.Linear(3, 4, dtype=dtype)
        self.head.weight = self.embed.weight
        self.steps = nn.Buffer(np.zeros((), np.int64))


def values(model):
    return {name: array.tolist() for name, array in model.state_dict().items()}


def test_a_shared_parameter_is_saved_once_and_comes_back_shared(tmp_path):
    model, path = Tied(), tmp_path / "a.safetensors"
    model.save_file(path, metadata={"epoch": "3"})
    assert set(serialize.header(path).entries) == {"embed.weight", "head.bias", "steps"}
    assert serialize.header(path).metadata == {"epoch": "3"}
    other = Tied().load_file(path)
    assert values(other) == values(model)
    assert other.head.weight is other.embed.weight


def test_any_name_of_a_shared_parameter_will_do():
    state = Tied().state_dict()
    state["head.weight"] = state.pop("embed.weight") + 1
    model = Tied().load_state_dict(state)
    assert model.embed.weight.tolist() == state["head.weight"].tolist()
    both = {**state, "embed.weight": state["head.weight"].copy()}
    Tied().load_state_dict(both)
    both["embed.weight"][0] = 7
    with pytest.raises(RecordError, match=r"embed.weight and head.weight are one para"):
        Tied().load_state_dict(both)


@pytest.mark.parametrize("dtype", ["float16", "float64", ml_dtypes.bfloat16])
def test_half_and_double_precision(tmp_path, dtype):
    model, path = Tied(), tmp_path / "a.safetensors"
    model.map(lambda name, x: x.data.round(1) if x.dtype.kind == "f" else x.data + 5)
    model.save_file(path, dtype=dtype)
    stored = serialize.load_file(path)
    assert stored["embed.weight"].dtype == np.dtype(dtype)
    assert stored["steps"].dtype == np.int64
    loaded = Tied().load_file(path)
    assert loaded.embed.weight.dtype == np.float32
    assert loaded.steps.item() == 5
    rounded = model.embed.weight.data.astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(loaded.embed.weight.data, rounded)
    assert Tied.from_bytes(model.to_bytes(dtype)).head.bias.dtype == np.float32
    half = Tied(dtype="float16").load_file(path)
    assert half.head.bias.dtype == np.float16


def test_a_value_too_large_for_the_record_is_refused(tmp_path):
    model = nn.Linear(1, 2)
    model.bias.assign(np.array([1, 1e6], np.float32))
    with pytest.raises(RecordError, match=r"float16: bias holds 1000000\.0, too large"):
        model.save_file(tmp_path / "a", dtype="float16")
    assert list(tmp_path.iterdir()) == []
    model.bias.assign(np.array([np.inf, 2], np.float32))
    model.save_file(tmp_path / "a", dtype="float16")


def weights(**changes):
    state = Tied().state_dict()
    for name, value in changes.items():
        name = name.replace("__", ".")
        state.pop(name, None)
        if value is not None:
            state[name] = value
    return state


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            weights(steps=None),
            "missing ['steps'], unexpected [] (burnish.store.load(..., partial=True)",
        ),
        (weights(extra=np.ones(1)), r"missing [], unexpected ['extra']"),
        (
            weights(head__bias=None, head__bios=np.ones(4)),
            "missing ['head.bias'], unexpected ['head.bios'] "
            "(is 'head.bios' meant to be 'head.bias'? "
            "burnish.store.load takes rename= and top_level_key=)",
        ),
        (
            {f"model.{k}": v for k, v in weights().items()},
            "(without the prefix 'model.' the names fit better: "
            "burnish.store.load(..., top_level_key='model'))",
        ),
        (
            {f"a.model.{k}": v for k, v in weights(b=np.ones(1)).items()},
            "top_level_key='a.model'",
        ),
        (
            weights(head__bias=np.ones(5)),
            "head.bias has shape (4,), got (5,); to load the rest: "
            "burnish.store.load(model, path, ignore_mismatched_sizes=True)",
        ),
        (weights(steps=np.float32(1)), "steps has dtype int64, got float32"),
        (
            weights(head__bias=np.ones(4, np.complex64)),
            "head.bias has dtype float32, got complex64",
        ),
        (
            weights(head__bias=np.ones(5), steps=None, a=np.ones(1)),
            "missing ['steps'], unexpected ['a'] (burnish.store.load takes rename= and "
            "top_level_key=); head.bias has shape (4,), got (5,); to load the rest: "
            "burnish.store.load(model, path, ignore_mismatched_sizes=True, "
            "partial=True)",
        ),
        (
            {f"n{i}": np.ones(1) for i in range(9)},
            "unexpected ['n0', 'n1', 'n2', 'n3', 'n4'] and 4 more",
        ),
    ],
)
def test_what_does_not_fit_is_reported_at_once_and_changes_nothing(state, message):
    model = Tied()
    before = values(model)
    with pytest.raises(RecordError) as caught:
        model.load_state_dict(state)
    assert str(caught.value).startswith("weights do not fit Tied: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert values(model) == before


def test_the_rest_is_loaded_as_the_error_says():
    held = weights(head__bias=np.ones(5), tail=np.ones(1))
    with pytest.raises(RecordError) as caught:
        Tied().load_state_dict(held)
    call = str(caught.value).partition("to load the rest: ")[2]
    assert call.startswith("burnish.store.load(")
    given = {"store": store, "model": Tied(), "path": held}
    report = eval(call.removeprefix("burnish."), given)
    assert report.skipped == ["head.bias"]
    assert "steps" in report.applied


def test_a_dtype_that_does_not_fit_is_not_passed_over():
    held = weights(head__bias=np.ones(5), steps=np.float32(1))
    with pytest.raises(RecordError) as caught:
        Tied().load_state_dict(held)
    assert "to load the rest" not in str(caught.value)


def test_names_need_not_match_when_not_strict():
    state = weights(steps=None, extra=np.ones(1), head__bias=np.full(4, 9, np.float32))
    model = Tied().load_state_dict(state, strict=False)
    assert model.head.bias.tolist() == [9, 9, 9, 9]
    with pytest.raises(RecordError, match="bias has shape"):
        model.load_state_dict({"head.bias": np.ones(3)}, strict=False)


def test_loading_makes_no_lazy_values():
    def refuse(shape, dtype, device):
        raise AssertionError("a lazy parameter was made")

    model = nn.Linear(2, 2, bias=False)
    model.weight = nn.Param(refuse, (2, 2))
    model.load_state_dict({"weight": np.eye(2)})
    assert model.weight.dtype == np.float32
    assert model(Tensor([1.0, 2.0])).tolist() == [1, 2]


def test_lists_and_tensors_are_values_too():
    model = nn.Linear(2, 2)
    model.load_state_dict({"weight": Tensor([[1.0, 2], [3, 4]]), "bias": [5, 6]})
    assert model.bias.dtype == np.float32
    assert values(model) == {"weight": [[1, 2], [3, 4]], "bias": [5, 6]}


def test_a_failed_save_keeps_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    nn.Linear(2, 2).save_file(path)
    before = path.read_bytes()
    model = nn.Linear(2, 2)
    model.label = nn.Buffer(np.array(["text"]))
    with pytest.raises(RecordError, match="'label': expected a dtype"):
        model.save_file(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


SOURCE = textwrap.dedent(
    '''\
    """Net: numbers to numbers."""

    from burnish import nn
    {extra}

    class Net(nn.Module):
        """(..., 2) -> (..., width)"""

        def __init__(self, width=3):
            self.head = nn.Linear(2, width)

        def forward(self, x):
            return self.head(x)
    '''
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a generated-like module and its weights."""
    folder = tmp_path / "src" / "shipped"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "net.py").write_text(SOURCE.format(extra=""))
    (folder / "net.safetensors").write_bytes(WEIGHTS)
    text = base64.b64encode(WEIGHTS).decode()
    (folder / "carried.py").write_text(SOURCE.format(extra=f"\nWEIGHTS = {text!r}\n"))
    (folder / "bare.py").write_text(SOURCE.format(extra=""))
    (folder / "tuned.py").write_text(
        "from shipped.net import Net\n\n\nclass Tuned(Net):\n    pass\n"
    )
    monkeypatch.syspath_prepend(folder.parent)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "shipped"]:
        del sys.modules[name]


WEIGHTS = serialize.to_bytes(
    {
        "head.weight": np.arange(6, dtype=np.float32).reshape(3, 2),
        "head.bias": np.ones(3, np.float32),
    }
)


def check(model):
    assert model(Tensor(np.array([1.0, 1], np.float32))).tolist() == [2, 6, 10]


def test_from_file_finds_the_weights_beside_the_source(package):
    check(importlib.import_module("shipped.net").Net.from_file())
    check(importlib.import_module("shipped.net").Net.from_embedded())
    check(importlib.import_module("shipped.tuned").Tuned.from_file())


def test_from_file_takes_a_path_and_constructor_arguments(package, tmp_path):
    net = importlib.import_module("shipped.net").Net
    net(width=5).save_file(tmp_path / "wide.safetensors")
    assert net.from_file(tmp_path / "wide.safetensors", width=5).head.bias.shape == (5,)
    with pytest.raises(RecordError, match=r"head.weight has shape \(3, 2\), got \(5"):
        net.from_file(str(tmp_path / "wide.safetensors"))


def test_from_bytes_and_weights_in_the_source(package):
    check(importlib.import_module("shipped.net").Net.from_bytes(WEIGHTS))
    check(importlib.import_module("shipped.carried").Net.from_embedded())


def test_missing_weights_are_named(package):
    bare = importlib.import_module("shipped.bare").Net
    with pytest.raises(RecordError, match=r"Net.from_file: .*found no .*bare.safetens"):
        bare.from_file()
    advice = r"save_file\(path\) writes one: .*none.safetensors"
    with pytest.raises(FileNotFoundError, match=advice):
        bare.from_file(package / "none.safetensors")


def test_weights_that_do_not_fit_come_with_their_file(tmp_path):
    path = tmp_path / "other.safetensors"
    nn.Linear(3, 4).save_file(path)
    with pytest.raises(RecordError, match=r"other.safetensors: weights do not fit Lin"):
        nn.Linear(3, 5).load_file(path)
    with pytest.raises(RecordError, match=r"^Linear.from_bytes: weights do not fit"):
        nn.Linear.from_bytes(path.read_bytes(), in_features=3, out_features=5)


def test_a_class_from_no_file_asks_for_a_path():
    start = {"__init__": lambda self: setattr(self, "head", nn.Linear(2, 1))}
    made = type("Made", (nn.Module,), {"__module__": "nowhere", **start})
    with pytest.raises(RecordError, match=r"Made.from_file: .*give the path"):
        made.from_file()


def test_a_class_without_tensors_needs_no_file():
    made = type("Made", (nn.Module,), {"__module__": "nowhere"})
    assert isinstance(made.from_file(), made)


def test_weights_in_a_zip(package, tmp_path, monkeypatch):
    archive = tmp_path / "app.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for file in package.iterdir():
            out.write(file, f"shipped/{file.name}")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    monkeypatch.delitem(sys.modules, "shipped", raising=False)
    module = importlib.import_module("shipped.net")
    assert ".zip" in module.__file__
    check(module.Net.from_file())
    check(module.Net.from_embedded())
    with pytest.raises(RecordError, match=r"found no .*bare.safetensors"):
        importlib.import_module("shipped.bare").Net.from_file()


@pytest.mark.oracle
def test_files_open_in_torch_and_back(tmp_path, torch):
    from safetensors.torch import load_file, save_file

    ours, theirs = nn.Linear(3, 4), torch.nn.Linear(3, 4)
    path = tmp_path / "a.safetensors"
    ours.save_file(path)
    theirs.load_state_dict(load_file(path))
    x = np.ones((2, 3), np.float32)
    y = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), y, rtol=1e-6)
    save_file(torch.nn.Linear(3, 4).state_dict(), path)
    ours.load_file(path)
