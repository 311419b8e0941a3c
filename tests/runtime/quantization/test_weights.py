"""Models with small weights: sizes, files, reports, groups, adapters on them."""

import copy
import pickle

import numpy as np
import pytest

from burnish import nn, ops, optim, record, serialize, store
from burnish.errors import InputError, RecordError
from burnish.models.mnist.mnist import Model as Mnist
from burnish.nn import ParamGroup
from burnish.quantization import (
    Calibration,
    Dequantize,
    Level,
    Quantizer,
    QuantScheme,
    quantize_dynamic,
)

BLOCKS = QuantScheme("q4f", "affine", Level.block(8), param="float16")


class Net(nn.Module):
    """Every kind of weight, one of them shared."""

    def __init__(self):
        self.embed = nn.Embedding(9, 8)
        self.conv = nn.Conv1d(8, 6, 3, padding=1)
        self.mix = [nn.Param(nn.init.normal(0.5), (6, 6))]
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 8)
        self.tied = self.embed.weight

    def forward(self, ids):
        x = self.norm(self.conv(self.embed(ids).mT).mT) @ self.mix[0]
        return self.head(x) @ self.tied.mT


IDS = np.random.default_rng(0).integers(0, 9, (4, 5))
NAMES = ["mix.0", "tied", "conv.weight", "head.weight"]


@pytest.mark.parametrize(
    "scheme", [QuantScheme(), BLOCKS, QuantScheme("e2m1")], ids=str
)
def test_weights_become_small_and_the_rest_stays(scheme):
    plain = Net()
    net = plain.fork("cpu")
    quantizer = Quantizer(scheme=scheme)
    assert net.quantize_weights(quantizer) is net
    assert [loss.path for loss in quantizer.report.losses] == NAMES
    assert net.num_params == plain.num_params
    assert net.num_bytes < 0.5 * plain.num_bytes
    for path, param in net.named_parameters():
        before = dict(plain.named_parameters())[path].numpy()
        assert (param.scheme == scheme) is (path in NAMES)
        loss = np.abs(param.numpy() - before)
        if path in NAMES:
            assert quantizer.report[path].largest == pytest.approx(loss.max())
            assert quantizer.report[path].mean == pytest.approx(loss.mean(), rel=1e-4)
            assert quantizer.report[path].after == param.nbytes
        else:
            assert not loss.any()
    assert net.tied is net.embed.weight


def test_the_report_says_signal_to_noise():
    net, quantizer = nn.Linear(50, 40, bias=False), Quantizer()
    before = net.weight.numpy()
    net.quantize_weights(quantizer)
    noise = ((net.weight.numpy() - before) ** 2).sum()
    loss = quantizer.report.worst
    assert loss.snr == pytest.approx(10 * np.log10((before**2).sum() / noise), abs=0.01)
    assert str(quantizer.report).splitlines()[-1] == (
        "whole module: 8,000 -> 2,160 bytes (27.0 %)"
    )


@pytest.mark.parametrize("ending", ["safetensors", "pt"])
@pytest.mark.parametrize("scheme", [QuantScheme(), BLOCKS], ids=str)
def test_files_say_how_to_read_them(scheme, ending, tmp_path):
    net = Net().quantize_weights(Quantizer(scheme=scheme))
    path = tmp_path / f"net.{ending}"
    net.save_file(path)
    again = Net().load_file(path)
    for (name, ours), (_, theirs) in zip(
        again.named_tensors(), net.named_tensors(), strict=True
    ):
        assert ours.scheme == theirs.scheme
        for part, array in ours.arrays().items():
            assert array.tobytes() == theirs.arrays()[part].tobytes(), (name, part)
    assert again(IDS).numpy().tobytes() == net(IDS).numpy().tobytes()
    full = Dequantize().map(Net().load_file(path))
    assert full(IDS).numpy().tobytes() == net(IDS).numpy().tobytes()
    assert all(param.scheme is None and param.trainable for param in full.parameters())


@pytest.mark.oracle
def test_pytorch_opens_the_file(torch, tmp_path):
    net = nn.Linear(7, 5).quantize_weights(Quantizer())
    net.save_file(tmp_path / "net.pt")
    state = torch.load(tmp_path / "net.pt")
    weight = state["weight.codes"].float() * state["weight.scales"]
    np.testing.assert_array_equal(weight, net.weight.numpy())


@pytest.mark.parametrize(
    "kind",
    [record.NamedMpkGzRecorder, record.PrettyJsonRecorder, record.NpzRecorder],
)
@pytest.mark.parametrize("precision", ["half", "full", "double"])
def test_recorders_keep_what_is_small(kind, precision, tmp_path):
    net = nn.Linear(7, 5, bias=False).quantize_weights(Quantizer(scheme=BLOCKS))
    recorder, again = kind(precision), nn.Linear(7, 5, bias=False)
    recorder.load_into(again, recorder.record(net, tmp_path / "net"))
    assert again.weight.scheme == BLOCKS
    np.testing.assert_array_equal(again.weight.numpy(), net.weight.numpy())


def test_stores_keep_and_rename_what_is_small(tmp_path):
    net = nn.Sequential(nn.Linear(7, 5)).quantize_weights(Quantizer(scheme=BLOCKS))
    file = tmp_path / "net.safetensors"
    store.save(net, file, rename=[("^0", "fc")])
    again = nn.Sequential(nn.Linear(7, 5))
    assert store.load(again, file, rename=[("^fc", "0")]).complete
    assert again[0].weight.scheme == BLOCKS
    np.testing.assert_array_equal(again[0].weight.numpy(), net[0].weight.numpy())
    store.load(again, file, rename=[("^fc", "0")], dequantize=True)
    assert again[0].weight.scheme is None
    np.testing.assert_array_equal(again[0].weight.numpy(), net[0].weight.numpy())
    flax = store.collect(net, layout=store.FLAX)
    np.testing.assert_array_equal(flax["0.kernel"].T, net[0].weight.numpy())
    store.save(quantize_dynamic(net), file)
    store.load(again, file)
    assert repr(again) == repr(net)


def test_a_half_precision_file_keeps_scales(tmp_path):
    net = nn.Linear(7, 5).quantize_weights(Quantizer())
    net.save_file(tmp_path / "net.safetensors", dtype="float16")
    header = serialize.header(tmp_path / "net.safetensors").entries
    assert header["bias"].dtype == "F16"
    assert header["weight.scales"].dtype == "F32"
    again = nn.Linear(7, 5).load_file(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(again.weight.numpy(), net.weight.numpy())


def test_plain_values_take_the_place_of_small_ones():
    net = nn.Linear(4, 3).quantize_weights(Quantizer())
    plain = nn.Linear(4, 3)
    net.load_state_dict(plain.state_dict())
    assert net.weight.scheme is None
    np.testing.assert_array_equal(net.weight.numpy(), plain.weight.numpy())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight.scheme": np.zeros(3, np.uint8)}, "weight: .*a scheme in JSON"),
        ({"weight.scales": np.ones(3, np.float32)}, "weight: .*expected .*scales"),
        ({"weight.codes": np.zeros((3, 5), np.int8)}, "weight: .*expected .*codes"),
        ({"weight.zero_points": np.zeros((3, 1), np.int8)}, "weight: .*zero_points"),
        ({"weight.scheme": None}, "missing .'weight'., unexpected"),
    ],
)
def test_damaged_files_change_nothing(change, message):
    state = nn.Linear(4, 3).quantize_weights(Quantizer()).state_dict() | change
    state = {name: array for name, array in state.items() if array is not None}
    net = nn.Linear(4, 3)
    before = net.weight.numpy()
    with pytest.raises(RecordError, match=message):
        net.load_state_dict(state)
    assert net.weight.numpy() is before


def test_another_shape_is_refused():
    state = nn.Linear(4, 3).quantize_weights(Quantizer()).state_dict()
    with pytest.raises(RecordError, match=r"weight has shape \(5, 4\), got \(3, 4\)"):
        nn.Linear(4, 5).load_state_dict(state, strict=False)


def test_a_group_alone_and_what_does_not_fit():
    net = Net().quantize_weights(Quantizer(), ParamGroup.from_paths("head"))
    found = [path for path, p in net.named_parameters() if p.scheme]
    assert found == ["head.weight", "head.bias"]
    with pytest.raises(InputError, match="found none among 0 of LayerNorm"):
        net.norm.quantize_weights(Quantizer())
    broken = Net()
    broken.head.weight.assign(np.full((8, 6), np.nan, np.float32))
    with pytest.raises(InputError, match=r"head\.weight: .*finite"):
        broken.quantize_weights(Quantizer())
    assert all(param.scheme is None for param in broken.parameters())


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), Net.valid]
)
def test_copies_are_small_too(copied):
    net = Net().quantize_weights(Quantizer(scheme=BLOCKS))
    other = copied(net)
    assert other.num_bytes == net.num_bytes
    assert other(IDS).numpy().tobytes() == net(IDS).numpy().tobytes()


def test_the_display_says_bytes():
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU())
    assert "bytes" not in repr(net)
    net.quantize_weights(Quantizer())
    assert repr(net).splitlines()[0] == "Sequential(  # 35 params in 70 bytes"
    assert "as symmetric q8s per channel 0" in repr(net[0].weight)


def test_small_weights_do_not_train_but_adapters_on_them_do():
    net = Net().quantize_weights(Quantizer(Calibration.mse(), BLOCKS))
    net.to("cpu:autodiff").unfreeze()
    found = nn.cross_entropy(net(IDS).reshape(-1, 9), IDS.reshape(-1)).backward()
    trained = optim.GradientsParams.from_grads(found, net)
    assert set(trained) == {"conv.bias", "norm.weight", "norm.bias", "head.bias"}
    before = net.valid()(IDS).numpy()
    net.apply_lora(2)
    np.testing.assert_allclose(net.valid()(IDS).numpy(), before, 1e-5, 1e-6)
    optimizer, losses = optim.Adam(), []
    for _ in range(30):
        loss = nn.cross_entropy(net(IDS).reshape(-1, 9), IDS.reshape(-1))
        optimizer.step(0.05, net, loss.backward())
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    names = list(net.state_dict())
    assert {"head.weight.codes", "head.weight.lora_A"} <= set(names)
    assert net.remove_adapters(merge=False).head.weight.scheme == BLOCKS
    np.testing.assert_allclose(net.valid()(IDS).numpy(), before, 1e-5, 1e-6)


def test_generated_source_reads_digits_in_eight_bits():
    model = Mnist.from_file()
    x = np.random.default_rng(0).random((4, 28, 28), np.float32)
    before = model(x).numpy()
    model.quantize_weights(Quantizer())
    np.testing.assert_allclose(model(x).numpy(), before, atol=0.1)
    assert model.num_bytes < 0.3 * Mnist.from_file().num_bytes


@pytest.mark.parametrize("kept", ["native", "packed_u8"])
@pytest.mark.parametrize(
    "level",
    [Level.tensor(), Level.row(), Level.channel(1), Level.block(4), Level.block(2, 3)],
    ids=str,
)
def test_a_table_gives_the_rows_of_the_whole_one(level, kept):
    scheme = QuantScheme("q8f", "affine", level, kept)
    table = nn.Embedding(9, 7, padding_idx=2).quantize_weights(Quantizer(scheme=scheme))
    np.testing.assert_array_equal(table(IDS).numpy(), table.weight.numpy()[IDS])
    np.testing.assert_array_equal(table(-IDS).numpy(), table.weight.numpy()[-IDS])
    assert table(np.zeros((0, 2), int)).shape == (0, 2, 7)
    with pytest.raises(InputError, match="expected ids from 0 to 8, got 9 to 9"):
        table(np.array([9]))


def test_a_tied_and_a_derived_value_can_be_assigned():
    net = Net().quantize_weights(Quantizer())
    other = nn.Linear(6, 8)
    other.weight.assign(net.head.weight)
    assert other.weight.scheme == net.head.weight.scheme
    with pytest.raises(InputError, match=r"expected values of shape \(8, 6\)"):
        other.weight.assign(net.conv.weight)
    assert ops.add(net.head.weight, 1).numpy().dtype == np.float32


@pytest.mark.parametrize("value", ["q8s", "q4f", "q2s"])
@pytest.mark.parametrize("level", [Level.tensor(), Level.block(4), Level.channel(0)])
@pytest.mark.parametrize("width", [8, 7])
def test_rows_of_a_packed_table_are_those_of_the_whole(value, level, width):
    table = np.random.default_rng(0).normal(size=(9, width)).astype(np.float32)
    packed = QuantScheme(value, level=level).pack(table)
    rows = np.array([[8, 0, 3], [3, -1, 5]])
    np.testing.assert_array_equal(packed.take(rows), packed.unpack()[rows])
