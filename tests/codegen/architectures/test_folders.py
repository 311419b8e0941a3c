"""Contents of a folder, refusals, and the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
import transformers

from burnish.codegen.cli import main
from burnish.codegen.errors import ConversionError, ReadError, UnsupportedError
from burnish.codegen.pipeline import Options, generate, write
from burnish.errors import RecordError
from burnish.serialize import load_file, save_file
from burnish.store import save_pretrained
from tests.harness.folders import Folder, batch, hugging_face
from tests.harness.imported import load_module

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

BERT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 20,
}
LLAMA = BERT | {"pad_token_id": 0, "tie_word_embeddings": True}


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A folder with a classifier."""
    config = transformers.BertConfig(**BERT)
    folder = tmp_path / "my-model"
    hugging_face("BertForSequenceClassification", config).save_pretrained(folder)
    return folder


def configured(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def renamed(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "model.safetensors"
    tensors = {name: np.array(array) for name, array in load_file(path).items()}
    save_file({change(name): array for name, array in tensors.items()}, path)


# --- kinds of weights ---


def test_weights_in_shards(tmp_path: Path) -> None:
    network = hugging_face("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA))
    made = Folder(network, tmp_path, max_shard_size="10KB")
    assert len(list(made.folder.glob("model-*.safetensors"))) > 1
    made.check_numbers(network, batch())


@pytest.mark.parametrize("sharded", [False, True])
def test_weights_of_pytorch(sharded: bool, tmp_path: Path) -> None:
    network = hugging_face("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA))
    made = Folder(network, tmp_path)
    (made.folder / "model.safetensors").unlink()
    state = network.state_dict()  # tied weights under both names
    if sharded:
        index: dict[str, str] = {}
        for number, part in enumerate((list(state)[::2], list(state)[1::2])):
            file = f"pytorch_model-0000{number}-of-00002.bin"
            torch.save({name: state[name] for name in part}, made.folder / file)
            index |= dict.fromkeys(part, file)
        text = json.dumps({"metadata": {}, "weight_map": index})
        (made.folder / "pytorch_model.bin.index.json").write_text(text)
    else:
        torch.save(state, made.folder / "pytorch_model.bin")
    generated = generate(made.folder, Options(name="again"))
    source, weights = write(generated, tmp_path)
    made.model = load_module(source).Model.from_file(weights)
    made.check_numbers(network, batch())


@pytest.mark.parametrize("size", ["50GB", "10KB"])
@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_a_tuned_model_goes_back_as_save_pretrained_writes_it(
    size: str, dtype: str | None, tmp_path: Path
) -> None:
    network = hugging_face("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA))
    made = Folder(network, tmp_path)
    made.model.map(lambda path, x: x.data * 1.5)
    saved = tmp_path / "tuned"
    save_pretrained(
        made.model, saved, made.folder, max_shard_size=size, precision=dtype
    )
    again, report = transformers.AutoModelForCausalLM.from_pretrained(
        saved, output_loading_info=True
    )
    assert not any(report.values()), report
    assert again.dtype == getattr(torch, dtype or "float32")
    for name, value in made.model.state_dict().items():
        held = again.get_parameter(name).detach()
        torch.testing.assert_close(held, torch.tensor(value).to(again.dtype))
    theirs = tmp_path / "theirs"
    again.save_pretrained(theirs, max_shard_size=size)
    assert {p.name for p in saved.iterdir()} == {p.name for p in theirs.iterdir()}
    assert configuration(saved) == configuration(theirs)
    source, weights = write(generate(saved, Options(name="back")), tmp_path)
    made.model = load_module(source).Model.from_file(weights)
    made.check_numbers(again.float(), batch())


def configuration(folder: Path) -> dict[str, Any]:
    values = json.loads((folder / "config.json").read_text())
    assert isinstance(values, dict)
    return values


def test_half_precision_stays_in_the_file(tmp_path: Path) -> None:
    network = hugging_face("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA))
    made = Folder(network.to(torch.bfloat16), tmp_path)
    stored = load_file(tmp_path / "generated.safetensors")
    assert {array.dtype.name for array in stored.values()} == {"bfloat16"}
    assert {p.dtype.name for p in made.model.parameters()} == {"float32"}
    made.check_numbers(network.float(), batch())


def test_several_ends_of_a_text_break_the_signature(tmp_path: Path) -> None:
    ends = [128001, 128008, 128009]
    network = hugging_face(
        "LlamaForCausalLM", transformers.LlamaConfig(**LLAMA, eos_token_id=ends)
    )
    made = Folder(network, tmp_path)
    made.check_source()
    assert "        eos=(128001, 128008, 128009),\n" in made.text


# --- what old versions wrote ---


def test_old_names_of_weights(bert: Path, tmp_path: Path) -> None:
    new = generate(bert)

    def old(name: str) -> str:
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        return name.replace("LayerNorm.bias", "LayerNorm.beta")

    renamed(bert, old)
    again = generate(bert)
    assert [e.path for e in again.weights] == [e.path for e in new.weights]
    assert again.notes == ()


def test_a_base_model_alone_and_weights_that_nothing_uses(tmp_path: Path) -> None:
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=4, vocab_size=50)
    network = hugging_face("GPT2LMHeadModel", config)
    made = Folder(network, tmp_path)
    renamed(made.folder, lambda name: name.removeprefix("transformer."))
    path = made.folder / "model.safetensors"
    tensors = {name: np.array(array) for name, array in load_file(path).items()}
    mask = np.tri(4, dtype=bool)[None, None]
    save_file(tensors | {"h.0.attn.bias": mask, "extra.weight": mask}, path)
    again = generate(made.folder, Options(name="again"))
    assert again.notes == ("not used by this model: extra.weight",)
    source, weights = write(again, tmp_path)
    made.model = load_module(source).Model.from_file(weights)
    made.check_numbers(network, batch())


# --- what is refused ---

REFUSED = [
    ({"architectures": ["BertLMHeadModel"]}, "expected one out of BertModel, .*LMHead"),
    ({"is_decoder": True}, "is_decoder: expected false, got true"),
    ({"position_embedding_type": "relative_key"}, 'expected "absolute", got "rel'),
    ({"hidden_act": "snake"}, 'hidden_act: expected "gelu" or .*, got "snake"'),
    ({"hidden_size": 30}, "hidden_size: expected a multiple of 4, got 30"),
    ({"hidden_size": "32"}, 'hidden_size: expected a whole number from 1, got "32"'),
    ({"num_hidden_layers": 10**9}, "num_hidden_layers: expected at most 100 layers"),
    (
        {
            "model_type": "albert",
            "architectures": ["AlbertModel"],
            "inner_group_num": 60_000,
        },
        "inner_group_num: expected at most 100 layers for these weights, got 60000",
    ),
    ({"num_hidden_layers": 10**400}, "num_hidden_layers: expected a whole number"),
    ({"hidden_size": float("inf")}, "hidden_size: expected a whole number"),
    ({"layer_norm_eps": float("nan")}, "layer_norm_eps: expected a finite number"),
    ({"layer_norm_eps": 10**400}, "layer_norm_eps: expected a finite number"),
    ({"vocab_size": 1 << 60}, "vocab_size: expected a whole number from 1"),
    ({"vocab_size": -1}, "vocab_size: expected a whole number from 1"),
    ({"hidden_dropout_prob": 1.5}, "hidden_dropout_prob: expected a number from 0"),
    (
        {"pad_token_id": "0) or print(1"},
        "pad_token_id: expected a whole number or null",
    ),
    ({"quantization_config": {"bits": 4}}, "expected weights that are not quantized"),
    ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: expected true or false"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=str)
def test_options_are_refused_by_name(
    changes: dict[str, Any], message: str, bert: Path
) -> None:
    configured(bert, **changes)
    with pytest.raises(UnsupportedError, match=message):
        generate(bert)


def test_another_model_type_is_made_from_its_weights(bert: Path) -> None:
    configured(bert, model_type="mamba")
    made = generate(bert)
    assert "model_type: expected one out of albert, " in made.notes[0]
    assert made.notes[0].endswith("got mamba; so this is what the weights alone tell")
    assert "nn.Unwritten" in made.text


def test_everything_that_is_wrong_is_reported_at_once(bert: Path) -> None:
    configured(bert, is_decoder=True, hidden_act="snake", frobnicate=3)
    with pytest.raises(UnsupportedError) as raised:
        generate(bert)
    assert all(key in str(raised.value) for key in ("is_dec", "hidden_act", "frob"))


def test_keys_that_change_nothing_are_passed_over(bert: Path) -> None:
    plain = generate(bert)
    configured(bert, _name_or_path="x", problem_type="regression", top_k=50, mine=None)
    configured(bert, directionality="bidi", pooler_type="first_token_transform")
    assert [e.path for e in generate(bert).weights] == [e.path for e in plain.weights]


def test_weights_that_do_not_fit(bert: Path) -> None:
    configured(bert, intermediate_size=48)
    with pytest.raises(ReadError, match=r"output.dense.weight: expected \(32, 48\)"):
        generate(bert)
    configured(bert, intermediate_size=40)
    renamed(bert, lambda name: name.replace("classifier", "clasifier"))
    with pytest.raises(ReadError, match=r"missing classifier.* unused clasifier"):
        generate(bert)


def test_one_tensor_with_two_values(tmp_path: Path) -> None:
    network = hugging_face("LlamaForCausalLM", transformers.LlamaConfig(**LLAMA))
    made = Folder(network, tmp_path)
    path = made.folder / "model.safetensors"
    tensors = {name: np.array(array) for name, array in load_file(path).items()}
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"] + 1
    save_file(tensors, path)
    with pytest.raises(ReadError, match="expected one tensor"):
        generate(made.folder)


def test_damaged_folders(bert: Path) -> None:
    weights = bert / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:-100])
    with pytest.raises(RecordError):
        generate(bert)
    weights.unlink()
    with pytest.raises(RecordError, match="expected a weights file"):
        generate(bert)
    weights.write_bytes(data)
    for text in ("{", "[]", '"bert"'):
        (bert / "config.json").write_text(text)
        with pytest.raises(ReadError, match="expected"):
            generate(bert)


# --- the command ---


def test_the_command_writes_and_checks(
    bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["generate", str(bert), "-o", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == [
        str(out / "my_model.py"),
        str(out / "my_model.safetensors"),
    ]
    assert "parameters" in printed.err
    assert main(["check", str(out), "--source", str(bert)]) == 0
    assert main(["generate", str(bert), "-o", str(out)]) == 0  # again, in its place
    configured(bert, hidden_dropout_prob=0.2)
    assert main(["check", str(out), "--source", str(bert)]) == 1
    assert main(["verify", str(bert), str(out)]) == 1
    assert "compare its numbers with transformers" in capsys.readouterr().err


def test_options_of_the_command(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = generate(bert, Options(name="small", half=True, embed=True))
    (source,) = write(made, tmp_path)
    assert "options: --name small --half --embed." in " ".join(made.text.split())
    module = load_module(source)
    monkeypatch.setitem(sys.modules, "small", module)
    model = module.Model.from_embedded()
    assert model.num_params == made.parameters
    with pytest.raises(ConversionError, match="flat: expected"):
        generate(bert, Options(flat=True))


def test_sizes_are_the_constructor_s_defaults(bert: Path, tmp_path: Path) -> None:
    module = load_module(write(generate(bert), tmp_path)[0])
    assert module.Model is module.BertForSequenceClassification
    model = module.Model(labels=7, depth=1, dim=16, hidden=20, vocab=9)
    assert model(**batch(vocab=9)).shape == (2, 7)
    assert len(model.bert.encoder.layer) == 1
