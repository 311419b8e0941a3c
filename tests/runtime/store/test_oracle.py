"""Weights from PyTorch and transformers and back to them, strictly."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from burnish import nn  # noqa: E402
from burnish.errors import RecordError  # noqa: E402
from burnish.store import (  # noqa: E402
    Filter,
    config_from_file,
    load,
    open_weights,
    save,
)

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
ENDINGS = [".pt", ".pth", ".bin", ".safetensors"]


def torch_net():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 6 * 6, 5),
        torch.nn.LSTM(5, 3, bidirectional=True),
    )


class Net(nn.Module):
    def __init__(self):
        layers = {
            "0": nn.Conv2d(3, 4, 3),
            "1": nn.BatchNorm2d(4),
            "4": nn.Linear(4 * 6 * 6, 5),
            "5": nn.LSTM(5, 3, bidirectional=True),
        }
        vars(self).update(layers)


class Counted(nn.Module):
    """The same layers, numbered without those that have no weights."""

    def __init__(self):
        layers = list(vars(Net()).values())
        vars(self).update({str(place): layer for place, layer in enumerate(layers)})


def loaded(path):
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, weights_only=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_saved_module_loads_in_torch_strictly(ending, tmp_path):
    path, model, other = tmp_path / f"net{ending}", Net(), torch_net()
    model.save_file(path)
    other.load_state_dict(loaded(path), strict=True)
    state = other.state_dict()
    assert state.keys() == model.state_dict().keys()
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(state[name].numpy(), array)


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_saves_loads_as_it_is(zipped, tmp_path):
    path, other = tmp_path / "net.pt", torch_net()
    torch.save(other.state_dict(), path, _use_new_zipfile_serialization=zipped)
    for model in (Net().load_file(path), Net.from_file(path), Counted()):
        if isinstance(model, Counted):
            assert load(model, path).complete
        x = torch.randn(2, 3, 8, 8)
        expected = other[0](x).detach().numpy()
        got = vars(model)["0"](x.numpy()).data
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_tied_weights_load_in_torch_strictly(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(4, 3)
            self.head = nn.Linear(3, 4, bias=False)
            self.head.weight = self.embed.weight

    other = torch.nn.Module()
    other.embed = torch.nn.Embedding(4, 3)
    other.head = torch.nn.Linear(3, 4, bias=False)
    other.head.weight = other.embed.weight
    model = Tied()
    model.save_file(tmp_path / "a.pt")
    save(model, tmp_path / "a.safetensors", every_name=True)
    for name in ("a.pt", "a.safetensors"):
        other.load_state_dict(loaded(tmp_path / name), strict=True)
        np.testing.assert_array_equal(
            other.head.weight.detach().numpy(), model.embed.weight.data
        )
    state = loaded(tmp_path / "a.pt")
    assert state["embed.weight"].data_ptr() == state["head.weight"].data_ptr()
    torch.save(other.state_dict(), tmp_path / "b.pt")
    assert load(Tied(), tmp_path / "b.pt").complete


def test_a_quantized_tensor_is_refused_or_dequantized(tmp_path):
    weight = torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 3, torch.qint8)
    torch.save({"weight": weight, "bias": torch.zeros(2)}, tmp_path / "q.pt")
    model = nn.Linear(3, 2)
    with pytest.raises(
        RecordError, match=r"weight is quantized \(qint8\).*dequantize="
    ):
        load(model, tmp_path / "q.pt")
    with pytest.raises(RecordError, match="weight is quantized"):
        model.load_file(tmp_path / "q.pt")
    load(model, tmp_path / "q.pt", dequantize=True)
    np.testing.assert_allclose(model.weight.data, weight.dequantize().numpy())


def test_a_checkpoint_with_configuration(tmp_path):
    @dataclasses.dataclass
    class Config:
        n_head: int
        rate: float
        names: list
        deep: dict

    values = {"n_head": 2, "rate": 0.5, "names": ["a"], "deep": {"b": (1, None)}}
    net = torch_net()
    checkpoint = {
        "epoch": 3,
        "config": values | {"mask": torch.ones(2)},
        "model": {"state": net.state_dict()},
        "optimizer": torch.optim.SGD(net.parameters(), 0.1).state_dict(),
    }
    path = tmp_path / "checkpoint.ckpt"
    torch.save(checkpoint, path)
    assert config_from_file(path, top_level_key="config") == values
    assert config_from_file(path, Config, "config") == Config(**values)
    assert config_from_file(path)["epoch"] == 3
    with pytest.raises(RecordError, match="Config does not take what is in the file"):
        config_from_file(path, Config)
    with pytest.raises(RecordError, match="expected a dict below 'epoch', got int"):
        config_from_file(path, top_level_key="epoch")
    with pytest.raises(RecordError, match=r"without the prefix 'model\.state\.'"):
        Net().load_file(path)
    assert load(Net(), path, top_level_key="model.state").complete


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_transformers_take_weights_back(name, tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {
        "gpt2": {"n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 11},
        "bert": {
            "hidden_size": 8,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "vocab_size": 11,
        },
    }
    kind = {"gpt2": "GPT2LMHeadModel", "bert": "BertForMaskedLM"}[name]
    config = transformers.AutoConfig.for_model(name, **sizes[name])
    original = getattr(transformers, kind)(config)
    original.save_pretrained(tmp_path / "theirs", max_shard_size="2KB")
    weights = open_weights(tmp_path / "theirs")
    model = holding(weights)
    load(model, tmp_path / "theirs")
    model.map(lambda path, x: x.data + 1)
    for ending in (".safetensors", ".bin"):
        folder = tmp_path / ending
        config.save_pretrained(folder)
        stem = "model" if ending == ".safetensors" else "pytorch_model"
        save(model, folder / f"{stem}{ending}", metadata=METADATA[ending])
        again = getattr(transformers, kind).from_pretrained(folder)
        state, before = again.state_dict(), original.state_dict()
        for key in weights:
            torch.testing.assert_close(state[key], before[key] + 1)


METADATA = {".safetensors": {"format": "pt"}, ".bin": None}


def holding(weights):
    """A module with a parameter of the right shape for every tensor."""
    root = nn.Module()
    for name, tensor in weights.items():
        *above, last = name.split(".")
        module = root
        for part in above:
            module = vars(module).setdefault(part, nn.Module())
        setattr(module, last, nn.Param(nn.init.zeros, tensor.shape, tensor.dtype))
    return root


def test_encoder_weights_move_into_another_model(tmp_path):
    torch.save(torch_net().state_dict(), tmp_path / "net.pt")
    model = Net()
    report = load(
        model,
        tmp_path / "net.pt",
        only=Filter.from_regex(r"^[01]\."),
        rename=[(r"^(\d)", r"\1")],
    )
    assert len(report.applied) == 7
    assert len(report.skipped) == 10
