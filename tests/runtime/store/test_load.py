"""Loading: names, parts, layouts, precision, and the report."""

import numpy as np
import pytest

from burnish import nn, serialize
from burnish.errors import InputError, RecordError
from burnish.store import (
    BURN,
    FLAX,
    KERAS,
    PYTORCH,
    Filter,
    Layout,
    Precision,
    Rule,
    collect,
    listing,
    load,
    open_weights,
    save,
)


class Net(nn.Module):
    """Every kind of layer that some framework lays out in its own way."""

    def __init__(self):
        self.stem = nn.Conv2d(4, 6, (3, 2), groups=2)
        self.depth = nn.Conv2d(3, 6, 3, groups=3)
        self.up = nn.ConvTranspose2d(6, 4, (3, 2))
        self.line = nn.Conv1d(2, 3, 5)
        self.norm = nn.BatchNorm2d(6)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.last = nn.LayerNorm(5)
        self.rms = nn.RMSNorm(5)
        self.table = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 3)


class Plain(nn.Module):
    def __init__(self):
        self.body = [nn.Linear(2, 2) for _ in range(3)]
        self.head = nn.Linear(2, 4)


class Tied(nn.Module):
    def __init__(self):
        self.embed = nn.Embedding(4, 3)
        self.head = nn.Linear(3, 4)
        self.head.weight = self.embed.weight


def counted(model):
    """The module with different numbers everywhere."""
    state = {
        name: (np.arange(item.size) + 100 * place).reshape(item.shape)
        for place, (name, item) in enumerate(model.named_tensors())
    }
    return model.load_state_dict(state)


def same(model, other, names=None):
    mine, theirs = model.state_dict(), other.state_dict()
    for name in mine if names is None else names:
        np.testing.assert_array_equal(mine[name], theirs[name], name)


def state(model=None, **changes):
    found = dict(counted(model or Plain()).state_dict())
    for name, new in changes.items():
        found[new] = found.pop(name.replace("__", "."))
    return found


# --- names ---


RENAMED = {
    "a prefix away": (lambda n: f"model.{n}", [(r"^model\.", "")]),
    "a part away": (lambda n: n.replace("body.", "body.fc."), [(r"\.fc\.", ".")]),
    "a group": (lambda n: n.replace("body.", "h"), [(r"^h(\d)", r"body.\1")]),
    "one after another": (
        lambda n: n.replace("weight", "w"),
        {r"w$": "kernel", r"kernel$": "weight"},
    ),
}


@pytest.mark.parametrize(("change", "rename"), RENAMED.values(), ids=RENAMED)
def test_names_are_renamed_by_regular_expressions(change, rename):
    source = {change(name): array for name, array in state().items()}
    model = Plain()
    report = load(model, source, rename=rename)
    same(model, counted(Plain()))
    assert report.complete
    assert len(report.applied) == 8


def test_two_names_may_not_become_one():
    with pytest.raises(RecordError, match=r"both 'body.0.weight' and 'body.1.weight'"):
        load(Plain(), state(), rename=[(r"\d", "9")])


@pytest.mark.parametrize("rename", [[("(", "")], [(r"b", r"\3")], [3]])
def test_a_bad_pattern_says_so(rename):
    with pytest.raises(InputError, match="rename"):
        load(Plain(), state(), rename=rename)


def gapped(names):
    order = {"0": "1", "1": "4", "2": "11"}
    return {
        ".".join(order.get(part, part) for part in name.split(".")): array
        for name, array in names.items()
    }


def test_indices_with_gaps_are_counted_where_that_fits():
    model = Plain()
    load(model, gapped(state()))
    same(model, counted(Plain()))
    with pytest.raises(RecordError, match=r"missing \['body\.0"):
        load(Plain(), gapped(state()), contiguous_indices=False)


class Gapped(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))


def test_indices_with_gaps_stay_where_the_module_has_them():
    model = Gapped()
    load(model, counted(Gapped()).state_dict())
    same(model, counted(Gapped()))
    with pytest.raises(RecordError, match=r"unexpected \['body\.1"):
        load(Gapped(), Gapped().state_dict(), contiguous_indices=True)


# --- parts ---


FILTERS = {
    "regex": (Filter.from_regex(r"^body\.[01]"), 4),
    "paths": (Filter.from_paths("head", "body.2.bias"), 3),
    "full path": (Filter.from_paths("head.weight"), 1),
    "not a prefix of a word": (Filter.from_paths("hea"), 0),
    "predicate": (Filter.from_predicate(lambda path, x: len(x.shape) == 1), 4),
    "either": (Filter.from_paths("head") | Filter.from_regex("0"), 4),
    "both": (Filter.from_paths("head") & Filter.from_regex("bias"), 1),
    "without": (Filter.all() - Filter.from_paths("head"), 6),
}


@pytest.mark.parametrize(("only", "count"), FILTERS.values(), ids=FILTERS)
def test_a_filter_chooses_what_is_loaded(only, count):
    model, before = Plain(), Plain()
    load(before, model.state_dict())
    report = load(model, state(), only=only)
    assert len(report.applied) == count
    assert len(report.skipped) == 8 - count
    same(model, counted(Plain()), report.applied)
    same(model, before, report.skipped)


def test_a_part_of_one_module_moves_to_another():
    model = Gapped()
    body = collect(
        counted(Plain()),
        only=Filter.from_paths("body.0", "body.2"),
        rename=[(r"^body\.", "")],
    )
    report = load(model.body, body)
    assert report.complete
    same(model.body, counted(Plain()).body[0], [])
    np.testing.assert_array_equal(model.body[2].weight.data, body["2.weight"])


def test_partial_loading_leaves_the_rest():
    source = state(head__bias="other.bias")
    model = Plain()
    with pytest.raises(RecordError, match=r"missing \['head.bias'\].*\['other.bias'\]"):
        load(model, source)
    report = load(model, source, partial=True)
    assert report.missing == ["head.bias"]
    assert report.unexpected == ["other.bias"]
    assert not report.complete


def test_values_of_another_shape_are_an_error_or_passed_over():
    source = state() | {"head.weight": np.ones((9, 2)), "head.bias": np.ones(9)}
    before = Plain()
    with pytest.raises(
        RecordError, match=r"head.weight has shape \(4, 2\), got \(9, 2\)"
    ):
        load(before, source, partial=True)
    report = load(before, source, ignore_mismatched_sizes=True)
    assert report.skipped == ["head.weight", "head.bias"]
    same(before, counted(Plain()), report.applied)


def test_nothing_changes_when_something_does_not_fit():
    model = counted(Plain())
    source = {name: array + 1 for name, array in state().items()}
    source["head.bias"] = np.ones(7)
    with pytest.raises(RecordError):
        load(model, source)
    same(model, counted(Plain()))


def test_tensors_below_a_key(tmp_path):
    source = {f"ema.model.{name}": array for name, array in state().items()}
    serialize.save_file(source, tmp_path / "a.safetensors")
    model = Plain()
    load(model, tmp_path / "a.safetensors", top_level_key="ema.model")
    same(model, counted(Plain()))
    with pytest.raises(RecordError, match=r"without the prefix 'ema\.model\.'"):
        load(model, tmp_path / "a.safetensors")
    with pytest.raises(RecordError, match="below 'state_dict', found them below 'ema'"):
        load(model, tmp_path / "a.safetensors", top_level_key="state_dict")


# --- the report ---


def test_the_report_says_what_was_done():
    source = state(head__bias="head.bios") | {"body.0.bias": np.ones(9)}
    source["extra"] = np.ones(1)
    report = load(Plain(), source, partial=True, ignore_mismatched_sizes=True)
    assert str(report).splitlines() == [
        "Plain: 6 applied, 1 missing, 2 unexpected, 1 skipped, 0 misfits",
        "  missing     head.bias",
        "  unexpected  head.bios  (meant to be head.bias?)",
        "  unexpected  extra",
    ]


def test_the_listing_shows_names_shapes_and_dtypes(capsys, tmp_path):
    save(Plain(), tmp_path / "a.safetensors", only=Filter.from_paths("head"))
    lines = ["head.bias    [4]     float32", "head.weight  [4, 2]  float32"]
    assert listing(open_weights(tmp_path / "a.safetensors")).splitlines() == lines
    load(
        Plain().head,
        tmp_path / "a.safetensors",
        rename=[("head.", "")],
        debug=True,
    )
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "head.weight -> weight  [4, 2]  float32"


# --- layouts ---


@pytest.mark.parametrize("layout", [PYTORCH, BURN, KERAS, FLAX, BURN | KERAS])
def test_a_layout_is_written_and_read_back(layout, tmp_path):
    path = tmp_path / "a.safetensors"
    save(counted(Net()), path, layout=layout)
    model = Net()
    assert load(model, path, layout=layout).complete
    same(model, counted(Net()))


NAMES = {
    "burn": (BURN, "weight weight weight gamma beta running_mean gamma gamma weight"),
    "keras": (
        KERAS,
        "kernel kernel kernel gamma beta moving_mean gamma scale embeddings",
    ),
    "flax": (FLAX, "kernel kernel kernel scale bias mean scale scale embedding"),
}


@pytest.mark.parametrize(("layout", "names"), NAMES.values(), ids=NAMES)
def test_names_are_the_frameworks_own(layout, names):
    head, stem, up, weight, bias, mean, last, rms, table = names.split()
    assert collect(Net(), layout=layout).keys() >= {
        f"head.{head}",
        f"stem.{stem}",
        f"up.{up}",
        f"norm.{weight}",
        f"norm.{bias}",
        f"norm.{mean}",
        f"instance.{weight}",
        f"instance.{bias}",
        f"last.{last}",
        f"rms.{rms}",
        f"table.{table}",
    }


def test_axes_are_the_frameworks_own():
    model = counted(Net())
    for layout in (KERAS, FLAX):
        found = collect(model, layout=layout)
        stem, line = model.stem.weight.data, model.line.weight.data
        assert found["head.kernel"].tolist() == model.head.weight.data.T.tolist()
        assert found["stem.kernel"].shape == (3, 2, 2, 6)
        assert found["stem.kernel"][2, 1, 0, 5] == stem[5, 0, 2, 1]
        assert found["line.kernel"][4, 1, 2] == line[2, 1, 4]
    up = model.up.weight.data  # (in, out, *S)
    assert collect(model, layout=KERAS)["up.kernel"][0, 1, 3, 5] == up[5, 3, 0, 1]
    assert collect(model, layout=FLAX)["up.kernel"][0, 1, 5, 3] == up[5, 3, 2, 0]
    assert collect(model, layout=BURN)["head.weight"].shape == (5, 3)


def test_keras_depthwise_kernels():
    model = counted(Net())
    kernel = model.depth.weight.data.reshape(3, 2, 3, 3).transpose(2, 3, 0, 1)
    source = collect(model, layout=KERAS) | {"depth.kernel": kernel}
    other = Net()
    load(other, source, layout=KERAS)
    same(other, model)


@pytest.mark.parametrize(
    ("layout", "spell"),
    [
        (KERAS, lambda name: name.replace(".", "/") + ":0"),
        (FLAX, lambda name: "params/" + name.replace(".", "/")),
        (FLAX, lambda name: "batch_stats." + name),
    ],
)
def test_names_in_the_frameworks_spelling(layout, spell):
    found = collect(counted(Net()), layout=layout)
    found.pop("norm.num_batches_tracked")
    model = Net()
    load(model, {spell(n): a for n, a in found.items()}, layout=layout)
    np.testing.assert_array_equal(
        model.stem.weight.data, counted(Net()).stem.weight.data
    )


def test_a_layout_of_ones_own():
    scaled = Rule(
        (nn.Linear,), "weight", "w", lambda a, layer: a / 2, lambda a, _: a * 2
    )
    found = collect(counted(Plain()), layout=Layout(scaled))
    assert found["head.w"][3, 1] == 2 * counted(Plain()).head.weight.data[3, 1]
    model = Plain()
    load(model, found, layout=Layout(scaled))
    same(model, counted(Plain()))


def test_a_wrong_shape_in_another_layout_is_named():
    source = collect(Net(), layout=KERAS)
    source |= {"stem.kernel": np.ones(3), "up.kernel": np.ones((2, 2))}
    with pytest.raises(
        RecordError, match=r"stem.weight has shape .*up.weight has shape"
    ):
        load(Net(), source, layout=KERAS)


# --- precision ---


def test_values_take_the_modules_precision_or_the_one_asked_for():
    source = {n: a.astype(np.float64) for n, a in state().items()}
    model = Plain()
    load(model, source)
    assert {x.dtype.name for x in model.parameters()} == {"float32"}
    load(model, source, precision="float64")
    assert {x.dtype.name for x in model.parameters()} == {"float64"}
    load(model, source, precision="float16")
    assert {x.dtype.name for x in model.parameters()} == {"float16"}


def test_some_layers_keep_their_precision(tmp_path):
    half = Precision("float16", without=(nn.BatchNorm2d,))
    model = Net()
    load(model, counted(Net()).state_dict(), precision=half)
    assert model.stem.weight.dtype == np.float16
    assert model.norm.weight.dtype == np.float32
    assert model.norm.num_batches_tracked.dtype == np.int64
    only = Precision("float16", only=(nn.Linear,))
    save(counted(Net()), tmp_path / "a.safetensors", precision=only)
    dtypes = {n: t.dtype for n, t in open_weights(tmp_path / "a.safetensors").items()}
    assert dtypes["head.weight"] == "float16"
    assert dtypes["stem.weight"] == "float32"


def test_a_value_too_large_for_a_precision_is_refused():
    source = state() | {"head.bias": np.full(4, 1e6)}
    with pytest.raises(RecordError, match=r"head\.bias holds 1000000\.0, too large"):
        load(Plain(), source, precision="float16")


# --- shared parameters, saving ---


def test_a_shared_parameter_may_have_one_name_or_all(tmp_path):
    model = Tied()
    model.embed.weight.assign(np.arange(12, dtype=np.float32).reshape(4, 3))
    save(model, tmp_path / "one.safetensors")
    save(model, tmp_path / "all.safetensors", every_name=True)
    save(model, tmp_path / "all.pt")
    assert "head.weight" not in open_weights(tmp_path / "one.safetensors")
    for name in ("one.safetensors", "all.safetensors", "all.pt"):
        other = Tied()
        assert load(other, tmp_path / name).complete
        assert other.head.weight is other.embed.weight
        same(other, model)
    weights = open_weights(tmp_path / "all.pt")
    assert weights["head.weight"].shares_memory(weights["embed.weight"])


def test_a_file_is_replaced_only_when_that_is_wanted(tmp_path):
    path = tmp_path / "a.safetensors"
    save(Plain(), path, metadata={"epoch": "3"})
    assert open_weights(path).metadata == {"epoch": "3"}
    with pytest.raises(RecordError, match="expected no file there"):
        save(Plain(), path, overwrite=False)
    with pytest.raises(RecordError, match="metadata"):
        save(Plain(), tmp_path / "a.pt", metadata={"epoch": "3"})
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_missing_batch_count_is_not_missed():
    source = dict(Net().state_dict())
    del source["norm.num_batches_tracked"]
    assert load(Net(), source).complete
    Net().load_state_dict(source)


def test_loading_makes_no_values_for_what_is_loaded(tmp_path):
    def never(shape, dtype, device):
        raise AssertionError("the initializer ran")

    save(nn.Linear(3, 2), tmp_path / "a.pt")
    layer = nn.Linear(3, 2)
    layer.weight = nn.Param(never, (2, 3))
    layer.bias = nn.Param(never, (2,))
    load(layer, tmp_path / "a.pt")
    assert layer.weight.data.shape == (2, 3)
    assert not layer.weight.data.flags.owndata


@pytest.mark.parametrize("layout", [PYTORCH, BURN, KERAS, FLAX])
def test_a_transposed_linear_is_saved_as_any_other(layout):
    """Where matrices are (in, out) it has its own, and PyTorch its (in, out) too."""
    layer, plain = nn.Linear(3, 2, transposed=True), nn.Linear(3, 2)
    layer.weight = plain.weight.T.numpy()
    [key] = [name for name in collect(layer, layout=layout) if "bias" not in name]
    one, other = (collect(m, layout=layout)[key] for m in (layer, plain))
    np.testing.assert_array_equal(one, other.T if layout is PYTORCH else other)
    back = nn.Linear(3, 2, transposed=True)
    load(back, collect(layer, layout=layout), layout=layout)
    np.testing.assert_array_equal(back.weight.numpy(), layer.weight.numpy())
