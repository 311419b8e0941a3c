"""Weights keep the keys that they have in PyTorch, where the graph still tells."""

from __future__ import annotations

import re

import numpy as np
import pytest

from burnish.codegen.pipeline import generate

torch = pytest.importorskip("torch")

from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle


class Block(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.up = torch.nn.Linear(dim, 2 * dim)
        self.down = torch.nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        self.blocks = torch.nn.ModuleList([Block(8) for _ in range(2)])
        self.lstm = torch.nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = torch.nn.Sequential(torch.nn.Linear(12, 4), torch.nn.ReLU())

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.lstm(x)[0])


class Depthwise(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.depthwise = torch.nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, x):
        return self.depthwise(x.transpose(2, 3)).transpose(2, 3)


class Picture(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.groups = torch.nn.GroupNorm(2, 8)
        self.depthwise = Depthwise(8)  # its layer has the same name
        self.act = torch.nn.PReLU(8)
        self.classifier = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = self.depthwise(self.act(self.groups(self.stem(x))))
        return self.classifier(x.mean((2, 3)))


class Turned(torch.nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


class OfChannels(torch.nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def stages():
    """A model that is a Sequential itself, of others with functions amid layers."""
    stem = OfChannels(3), torch.nn.Conv2d(3, 8, 2, 2), Turned(), torch.nn.LayerNorm(8)
    blocks = torch.nn.Sequential(Block(8), Block(8))
    head = torch.nn.Flatten(), torch.nn.Linear(72, 4), torch.nn.Softmax(-1)
    return torch.nn.Sequential(torch.nn.Sequential(*stem), blocks, *head)


class Rows(torch.nn.Module):
    """Recurrent layers with nothing between them, some of them one module."""

    def __init__(self):
        super().__init__()
        made = [torch.nn.GRU(8, 8, batch_first=True) for _ in range(3)]
        self.rnns = torch.nn.ModuleList(made)
        self.lstm = torch.nn.LSTM(8, 4, 2, batch_first=True)
        self.last = torch.nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        for rnn in self.rnns:
            x, _ = rnn(x)
        return self.last(self.lstm(x)[0])[0]


class Named(torch.nn.Module):
    """Parameters of its own, also in lists; lists of lists; names with signs."""

    def __init__(self):
        super().__init__()
        self.W = torch.nn.Parameter(torch.randn(8, 8))
        self.scales = torch.nn.ParameterList([torch.randn(8) for _ in range(2)])
        pairs = [[torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)] for _ in range(2)]
        self.pairs = torch.nn.ModuleList(map(torch.nn.ModuleList, pairs))
        self.ends = torch.nn.ModuleDict({"a": torch.nn.Linear(8, 2)})
        self.std = torch.nn.Parameter(torch.randn(8))
        self.forward_ = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.forward_(x @ self.W / self.std)
        for scale, (linear, norm) in zip(self.scales, self.pairs, strict=True):
            x = x + scale * norm(linear(x).relu())
        return self.ends["a"](x)


class Around(torch.nn.Module):
    """It calls a part of a part, which the older exporter does not write down."""

    def __init__(self):
        super().__init__()
        self.model = torch.nn.Module()
        self.model.block = Block(8)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.model.block(x))


WORD_IDS, PIXELS, FRAMES = torch.arange(10).reshape(2, 5), (2, 3, 6, 6), (2, 5, 8)
KINDS = {
    "layers": (Tagger, WORD_IDS),
    "norms": (Picture, PIXELS),
    "sequential": (stages, PIXELS),
    "recurrent": (Rows, FRAMES),
    "parameters": (Named, FRAMES),
    "around": (Around, FRAMES),
}


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_keys_are_those_of_the_original(tmp_path, name, dynamo):
    torch.manual_seed(0)
    kind, shape = KINDS[name]
    model = kind().eval()
    for parameter in model.parameters():  # no two alike, which exporters merge
        torch.nn.init.normal_(parameter)
    x = torch.randn(shape) if isinstance(shape, tuple) else shape
    path = exported(model, (x,), tmp_path / "model.onnx", dynamo)
    made = generate(path)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    assert {each.path: tuple(each.weight.shape) for each in made.weights} == shapes


def weight_norm(layer):
    return torch.nn.utils.weight_norm(layer, dim=None)


def spectral_norm(layer):
    return torch.nn.utils.spectral_norm(layer)


class Symmetric(torch.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


def symmetric(layer):
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


COMPUTED = (
    torch.nn.utils.weight_norm,
    weight_norm,
    torch.nn.utils.parametrizations.weight_norm,
    spectral_norm,
    symmetric,
)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("computed", COMPUTED)
def test_keys_of_computed_weights(tmp_path, computed):
    """The older exporter's: the newer one computes them once and for all."""
    layers = [computed(torch.nn.Linear(6, 6)) for _ in range(2)]
    model = torch.nn.Sequential(torch.nn.Sequential(*layers), torch.nn.ReLU()).eval()
    x = torch.randn(2, 6)
    made = generate(exported(model, (x,), tmp_path / "model.onnx", False))
    ours, state = {e.path: e.weight.array for e in made.weights}, model.state_dict()
    assert ours.keys() == state.keys()
    for key, value in ours.items():
        np.testing.assert_array_equal(value, state[key].numpy(), key)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = torch.nn.Parameter(torch.tensor(2.6))
        self.register_buffer("mean", torch.randn(6))
        self.register_buffer("ids", torch.arange(3), persistent=False)
        self.places = torch.nn.Embedding(3, 6)
        self.head = torch.nn.Linear(6, 2)

    def forward(self, x):
        x = (x - self.mean).unsqueeze(1) + self.places(self.ids)
        return self.head(x) * self.logit_scale.exp()


@pytest.mark.parametrize("dynamo", [True, False])
def test_a_parameter_behind_a_function_is_kept(tmp_path, dynamo):
    model = Scaled().eval()
    path = exported(model, (torch.randn(2, 6),), tmp_path / "model.onnx", dynamo)
    made = {each.path: each.weight for each in generate(path).weights}
    state = model.state_dict()
    folded = set() if dynamo else {"bias", "places.weight"}
    assert made.keys() ^ state.keys() == folded  # the older one does not tell of what
    if dynamo:
        places = state["places.weight"].numpy()
        np.testing.assert_array_equal(made["places.weight"].array, places)
    scale = made["logit_scale"]
    assert scale.trained
    np.testing.assert_allclose(scale.array, np.float32(2.6), rtol=1e-6)
    assert made["mean"].trained is not dynamo  # the older one does not tell


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
WORDS = SMALL | {"vocab_size": 31}
T5 = {"d_model": 16, "d_ff": 24, "d_kv": 8, "num_layers": 2, "num_heads": 2}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 31}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2}
PICTURES = SMALL | {"image_size": 16, "patch_size": 8}
FAMILIES = {  # model, configuration, and what differs: unused, tied, tables
    "bert": ("BertModel", "BertConfig", WORDS, r"pooler\..*"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, r"lm_head\.weight"),
    "llama": ("LlamaModel", "LlamaConfig", WORDS, ""),
    "t5 encoder": ("T5EncoderModel", "T5Config", T5 | {"vocab_size": 31}, "shared.*"),
    "vit": ("ViTModel", "ViTConfig", PICTURES, r"pooler\..*"),
}


def drawn(transformers, kind, config, sizes):
    """A network in which no two weights are alike."""
    made = getattr(transformers, config)(**sizes, attn_implementation="eager")
    made.use_cache = False
    model = getattr(transformers, kind)(made)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_keys_of_transformers(tmp_path, name, dynamo):
    transformers = pytest.importorskip("transformers")
    kind, config, sizes, others = FAMILIES[name]
    model = drawn(transformers, kind, config, sizes)

    class First(type(model)):
        def forward(self, first, mask=None):
            given = {} if mask is None else {"attention_mask": mask}
            found = super().forward(first, **given)
            return found.logits if "logits" in found else found.last_hidden_state

    model.__class__ = First
    inputs = [torch.randint(3, 31, (2, 5)), torch.tensor([[0, 1, 1, 1, 1]] * 2)]
    axes = [{0: "batch", 1: "time"}] * 2
    if name == "vit":
        inputs, axes = [torch.randn(2, 3, 16, 16)], [{0: "batch"}]
    path = exported(model.eval(), inputs, tmp_path / "model.onnx", dynamo, axes)
    ours = {each.path for each in generate(path).weights}
    differ = ours ^ set(model.state_dict())
    assert [key for key in sorted(differ) if not re.fullmatch(others, key)] == []


TOWERS = {
    "text_config": WORDS | {"max_position_embeddings": 12},
    "vision_config": PICTURES,
    "projection_dim": 8,
}
SPEECH = WORDS | {"conv_dim": (8, 8), "conv_kernel": (4, 3), "conv_stride": (2, 2)}
SPEECH |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4}
SPEECH |= {"num_conv_pos_embedding_groups": 2, "mask_time_prob": 0}
READ, WRITTEN = {"input_ids": (2, 5)}, {"decoder_input_ids": (2, 5)}
WHOLE = {  # model, configuration, inputs, result, and what differs
    "clip": (
        ("CLIPModel", "CLIPConfig", TOWERS),
        READ | {"pixel_values": (2, 3, 16, 16)},
        ("logits_per_text", ""),
    ),
    "t5": (
        ("T5ForConditionalGeneration", "T5Config", T5 | {"vocab_size": 31}),
        READ | WRITTEN,
        ("logits", r"(shared|decoder\.embed_tokens|lm_head)\.weight"),
    ),
    "wav2vec2": (
        ("Wav2Vec2Model", "Wav2Vec2Config", SPEECH),
        {"input_values": (2, 64)},
        ("last_hidden_state", ""),
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_keys_and_values_of_whole_models(tmp_path, name):
    """With the older exporter: the newer one takes many seconds for each of them."""
    transformers = pytest.importorskip("transformers")
    (kind, config, sizes), shapes, (result, others) = WHOLE[name]
    model = drawn(transformers, kind, config, sizes)

    class Given(type(model)):
        def forward(self, first, second=None):
            inputs = zip(shapes, (first, second), strict=False)
            return super().forward(**dict(inputs))[result]

    model.__class__ = Given
    inputs = [
        torch.randint(3, 31, shape) if "ids" in key else torch.randn(shape)
        for key, shape in shapes.items()
    ]
    axes = [
        {0: key, 1: f"{key}_time"} if x.ndim == 2 else {0: key}
        for key, x in zip(shapes, inputs, strict=True)
    ]
    path = exported(model.eval(), inputs, tmp_path / "model.onnx", False, axes)
    ours = {each.path: each.weight.array for each in generate(path).weights}
    state = model.state_dict()
    differ = ours.keys() ^ state.keys()
    assert [key for key in sorted(differ) if not re.fullmatch(others, key)] == []
    for key in ours.keys() & state.keys():
        np.testing.assert_array_equal(ours[key], state[key].numpy(), key)
