"""The class of one network, with another's sizes and weights, is that other network."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import Tensor
from burnish.codegen.pipeline import generate, write
from burnish.models.minilm import minilm
from burnish.models.resnet18 import resnet18_torchscript
from burnish.optim import SGD
from tests.harness.imported import load_class

torch = pytest.importorskip("torch", reason="pip install 'burnish[oracle]'")
t = pytest.importorskip("transformers", reason="pip install 'burnish[oracle]'")
pytest.importorskip("onnxscript", reason="pip install 'burnish[oracle]'")

from tests.harness.torch_exports import export  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


@dataclass(frozen=True)
class Sizes:
    """The arguments that a network is built with."""

    dim: int
    depth: int
    heads: int
    kv_heads: int
    hidden: int
    vocab: int
    positions: int

    @property
    def common(self) -> dict[str, int]:
        """By the names of most configurations."""
        return {
            "hidden_size": self.dim,
            "num_hidden_layers": self.depth,
            "num_attention_heads": self.heads,
            "intermediate_size": self.hidden,
        }

    @property
    def words(self) -> dict[str, int]:
        """Those of a network that reads words."""
        places = {"max_position_embeddings": self.positions}
        return self.common | {"vocab_size": self.vocab} | places

    @property
    def wide(self) -> Sizes:
        """Those of another tower."""
        wider = {"dim": 2 * self.dim, "heads": 2 * self.heads}
        return replace(self, depth=self.depth + 1, hidden=3 * self.hidden, **wider)

    def given(self, *names: str) -> dict[str, int]:
        """Some of them by their names here, or by a tower's."""
        towers = {"text": self, "vision": self.wide}
        of = {name: name.rpartition("_") for name in names}
        return {
            name: getattr(towers[tower], size)
            if tower in towers
            else getattr(self, name)
            for name, (tower, _, size) in of.items()
        }


ONE = Sizes(32, 3, 4, 2, 48, 99, 40)
OTHER = Sizes(36, 2, 6, 3, 40, 60, 30)
IDS = {"input_ids": torch.arange(4, 26).view(2, 11)}
MASKED = IDS | {"attention_mask": (torch.arange(22).view(2, 11) > 2).long()}
START = {"decoder_input_ids": torch.arange(14).view(2, 7)}
IMAGES = {"pixel_values": torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)}
SOUND = {"input_values": torch.linspace(0, 99, 800).view(2, 400).sin()}
SPECTRUM = {"input_features": torch.linspace(-1, 1, 640).view(2, 8, 40)}
BODY = ("dim", "depth", "heads", "hidden")


@dataclass(frozen=True)
class Case:
    """A network of given sizes, what it takes, and which arguments its class has."""

    make: Callable[[Sizes], Any]
    inputs: dict[str, Any]
    arguments: tuple[str, ...]
    dynamo: bool


def _t5(s: Sizes) -> Any:
    return t.T5ForConditionalGeneration(
        t.T5Config(
            d_model=s.dim,
            d_ff=s.hidden,
            d_kv=s.dim // s.heads,
            num_layers=s.depth,
            num_heads=s.heads,
            vocab_size=s.vocab,
            attn_implementation="eager",
        )
    )


def _whisper(s: Sizes) -> Any:
    sides = ("encoder", "decoder")
    return t.WhisperModel(
        t.WhisperConfig(
            d_model=s.dim,
            vocab_size=s.vocab,
            num_mel_bins=8,
            max_source_positions=20,
            max_target_positions=s.positions,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=3,
            **{f"{side}_layers": s.depth for side in sides},
            **{f"{side}_attention_heads": s.heads for side in sides},
            **{f"{side}_ffn_dim": s.hidden for side in sides},
        )
    )


def _gpt2(s: Sizes) -> Any:
    return t.GPT2LMHeadModel(
        t.GPT2Config(
            n_embd=s.dim,
            n_layer=s.depth,
            n_head=s.heads,
            n_inner=s.hidden,
            vocab_size=s.vocab,
            n_positions=s.positions,
        )
    )


def _llama(s: Sizes) -> Any:
    return t.LlamaForCausalLM(t.LlamaConfig(**s.words, num_key_value_heads=s.kv_heads))


def _clip(s: Sizes) -> Any:
    return _two_towers(s, s)


def _wide_clip(s: Sizes) -> Any:
    return _two_towers(s, s.wide)


def _alike_clip(s: Sizes) -> Any:
    return _two_towers(s, replace(s.wide, heads=s.heads))


def _two_towers(words: Sizes, images: Sizes) -> Any:
    text = words.words | {"eos_token_id": 25, "bos_token_id": 4}
    vision = images.common | {"image_size": 32, "patch_size": 8}
    return t.CLIPModel(
        t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    )


def _wav2vec2(s: Sizes) -> Any:
    return t.Wav2Vec2ForCTC(
        t.Wav2Vec2Config(
            **s.common,
            vocab_size=s.vocab,
            conv_dim=(16, 16),
            conv_stride=(5, 2),
            conv_kernel=(10, 3),
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
            num_feat_extract_layers=2,
        )
    )


def _vit(s: Sizes) -> Any:
    return t.ViTModel(t.ViTConfig(**s.common, image_size=32, patch_size=8))


def _bert(s: Sizes) -> Any:
    return t.BertModel(t.BertConfig(**s.words))


def _neox(s: Sizes) -> Any:
    return t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**s.words))


WORDS = (*BODY, "vocab", "positions")
ALIKE = ("text_dim", "text_depth", "text_hidden", "vocab", "positions", "heads")
ALIKE += ("vision_dim", "vision_depth", "vision_hidden")
TOWERS = (*(name for name in ALIKE if name != "heads"), "text_heads", "vision_heads")
CASES = {
    "bert": Case(_bert, MASKED, WORDS, dynamo=False),
    "gpt2": Case(_gpt2, MASKED, WORDS, dynamo=False),
    "llama": Case(_llama, MASKED, (*BODY, "kv_heads", "vocab"), dynamo=False),
    "t5": Case(_t5, MASKED | START, (*BODY, "vocab"), dynamo=False),
    "t5 dynamo": Case(_t5, MASKED | START, (*BODY, "vocab"), dynamo=True),
    "whisper": Case(_whisper, SPECTRUM | START, WORDS, dynamo=True),
    "vit": Case(_vit, IMAGES, BODY, dynamo=False),
    "clip": Case(_clip, IDS | IMAGES, WORDS, dynamo=False),
    "clip of two widths": Case(_wide_clip, IDS | IMAGES, TOWERS, dynamo=False),
    "clip of equal heads": Case(_alike_clip, IDS | IMAGES, ALIKE, dynamo=False),
    "wav2vec2": Case(_wav2vec2, SOUND, (*BODY, "vocab"), dynamo=False),
}


def _exported(case: Case, sizes: Sizes, path: Path) -> Any:
    """Write a network of these sizes; what it gives."""
    torch.manual_seed(0)
    model = case.make(sizes).eval()
    model.config.use_cache = False
    for parameter in model.parameters():  # no two equal, as after training
        parameter.data += 0.02 * torch.randn_like(parameter)
    kind, names = type(model), list(case.inputs)

    def forward(self: Any, first: Any, second: Any = None, third: Any = None) -> Any:
        given = dict(zip(names, (first, second, third), strict=False))
        found = kind.forward(self, **given)
        wanted = ("logits", "logits_per_image", "last_hidden_state")
        return next(found[name] for name in wanted if name in found)

    model.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    arguments = list(inspect.signature(forward).parameters)[1 : len(names) + 1]
    axes = {
        name: {0: "images" if x.ndim > 2 else "batch"}
        | ({1: "time"} if x.ndim == 2 else {})
        for name, x in case.inputs.items()
    }
    axes |= {name: {0: "batch", 1: "target"} for name in START if name in axes}
    automatic = torch.export.Dim.DYNAMIC
    dynamic = {
        argument: dict.fromkeys(axes[name], automatic)
        for argument, name in zip(arguments, names, strict=True)
    }
    how: dict[str, Any] = (
        {"dynamo": True, "opset_version": 20, "dynamic_shapes": dynamic}
        | {"external_data": False, "verbose": False}
        if case.dynamo
        else {"dynamo": False, "opset_version": 18, "dynamic_axes": axes}
    )
    inputs = tuple(case.inputs.values())
    with torch.no_grad():
        want = model(*inputs).numpy()
    export(model, inputs, path, input_names=names, **how)
    return want


@pytest.mark.parametrize("name", CASES)
def test_another_networks_sizes_make_that_network(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    _exported(case, ONE, tmp_path / "one.onnx")
    want = _exported(case, OTHER, tmp_path / "other.onnx")
    source, _ = write(generate(tmp_path / "one.onnx"), tmp_path)
    _, weights = write(generate(tmp_path / "other.onnx"), tmp_path)
    inputs = [x.numpy() for x in case.inputs.values()]
    kind = load_class(source)
    other = kind.from_file(weights, **OTHER.given(*case.arguments))
    np.testing.assert_allclose(other(*inputs), want, atol=1e-4 * np.abs(want).max())

    fresh = kind(**OTHER.given(*case.arguments)).to("cpu:autodiff")
    tensors = [Tensor(x, device="cpu:autodiff") for x in inputs]
    losses = []
    for _ in range(3):
        loss = (fresh(*tensors) - want).square().mean()
        losses.append(float(loss))
        SGD().step(1e-2, fresh, loss.backward())
    assert losses[-1] < losses[0]


def test_a_class_takes_its_own_sizes(tmp_path: Path) -> None:
    """Heads of 3 * 8 columns, cut into queries, keys and values: 12 divides no 32."""
    case = Case(_neox, IDS, (), dynamo=True)
    want = _exported(case, ONE, tmp_path / "one.onnx")
    source, weights = write(generate(tmp_path / "one.onnx"), tmp_path)
    kind = load_class(source)
    kind()
    got = kind.from_file(weights)(*(x.numpy() for x in IDS.values()))
    np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max())


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("llama")
    _exported(CASES["llama"], ONE, folder / "one.onnx")
    source, _ = write(generate(folder / "one.onnx"), folder)
    return load_class(source)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"dim": 30}, r"2 \* heads=8 does not divide dim=30"),
        ({"kv_heads": 3}, "kv_heads=3 does not divide heads=4"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    llama: Any, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        llama(**sizes)


def test_tables_are_made_for_other_sizes(llama: Any) -> None:
    tensors = dict(llama(dim=48, heads=4).named_tensors())
    (table,) = (x for name, x in tensors.items() if "rotary" in name)
    config = t.LlamaConfig(hidden_size=48, num_attention_heads=4)
    made = t.models.llama.modeling_llama.LlamaRotaryEmbedding(config).inv_freq
    np.testing.assert_allclose(np.asarray(table), made.numpy(), rtol=1e-6)


def test_the_gallerys_minilm_is_any_bert() -> None:
    torch.manual_seed(0)
    config = t.BertConfig(**OTHER.words)
    model = t.BertModel(config, add_pooling_layer=False).eval()
    mine = minilm.Model(**OTHER.given(*WORDS))
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    mine.load_state_dict(state, strict=False)
    inputs = [*MASKED.values(), torch.arange(22).view(2, 11) % 2]
    with torch.no_grad():
        want = model(*inputs).last_hidden_state.numpy()
    got = mine(*(x.numpy() for x in inputs))
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_the_gallerys_resnet_learns_other_classes() -> None:
    model = resnet18_torchscript.Model(classes=3).to("cpu:autodiff")
    noise = np.random.default_rng(0).normal(size=(2, 3, 224, 224))
    images = Tensor(noise.astype("float32"), device="cpu:autodiff")
    losses = []
    for _ in range(3):
        y = model(images)
        assert y.shape == (2, 3)
        loss = (y - 1.0).square().mean()
        losses.append(float(loss))
        SGD().step(1e-3, model, loss.backward())
    assert losses[-1] < losses[0]
