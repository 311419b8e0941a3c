"""`--typed` for Hugging Face folders: the same program with annotations."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import transformers

import burnish
from burnish.codegen.pipeline import Options, generate
from tests.harness.folders import SELECT, hugging_face
from tests.harness.imported import load_module
from tests.harness.ruff import complaints, formatted

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

INSTALLED = Path(burnish.__file__).parent.name == "burnish"
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "vocab_size": 50,
    "pad_token_id": 0,
}
SIGHT = {
    name: SMALL[name] for name in SMALL if name not in ("vocab_size", "pad_token_id")
}
SIGHT |= {"image_size": 16, "patch_size": 8}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 40, "num_layers": 2, "num_heads": 4}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 50}
NETWORKS: dict[str, Any] = {
    "BertForPreTraining": transformers.BertConfig(**SMALL),
    "BertForMultipleChoice": transformers.BertConfig(**SMALL),
    "RobertaForQuestionAnswering": transformers.RobertaConfig(**SMALL),
    "AlbertForMaskedLM": transformers.AlbertConfig(**SMALL, embedding_size=16),
    "DistilBertForTokenClassification": transformers.DistilBertConfig(
        dim=32, n_layers=2, n_heads=4, hidden_dim=40, vocab_size=50
    ),
    "ElectraForPreTraining": transformers.ElectraConfig(**SMALL, embedding_size=16),
    "GPT2LMHeadModel": transformers.GPT2Config(**GPT2, bos_token_id=0, eos_token_id=1),
    "GPT2ForSequenceClassification": transformers.GPT2Config(**GPT2, pad_token_id=0),
    "LlamaForCausalLM": transformers.LlamaConfig(**SMALL, num_key_value_heads=2),
    "Gemma2ForCausalLM": transformers.Gemma2Config(
        **SMALL, num_key_value_heads=2, head_dim=8, sliding_window=6
    ),
    "Phi3ForTokenClassification": transformers.Phi3Config(**SMALL),
    "T5ForConditionalGeneration": transformers.T5Config(**T5, vocab_size=50),
    "T5EncoderModel": transformers.T5Config(**T5, vocab_size=50),
    "ViTForImageClassification": transformers.ViTConfig(**SIGHT),
    "ViTModel": transformers.ViTConfig(**SIGHT | {"patch_size": (4, 8)}),
    "ResNetForImageClassification": transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type="basic"
    ),
    "ConvNextModel": transformers.ConvNextConfig(
        hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1]
    ),
    "CLIPModel": transformers.CLIPConfig(
        text_config=SMALL | {"max_position_embeddings": 20},
        vision_config=SIGHT,
        projection_dim=16,
    ),
    "WhisperForConditionalGeneration": transformers.WhisperConfig(
        vocab_size=60,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=20,
        pad_token_id=50,
        bos_token_id=51,
        eos_token_id=52,
        decoder_start_token_id=53,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    ),
    "Wav2Vec2ForCTC": transformers.Wav2Vec2Config(
        **SMALL,
        conv_dim=(16, 16),
        conv_kernel=(10, 3),
        conv_stride=(5, 2),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    ),
}


class _Bare(ast.NodeTransformer):
    """A program without annotations, their imports and its docstring."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node


def bare(text: str) -> str:
    tree = _Bare().visit(ast.parse(text))
    tree.body = [
        part
        for part in tree.body[1:]
        if not isinstance(part, ast.Import | ast.ImportFrom)
    ]
    return ast.unparse(tree)


def saved(name: str, folder: Path) -> Path:
    hugging_face(name, NETWORKS[name]).save_pretrained(folder / name)
    return folder / name


@pytest.mark.parametrize("name", NETWORKS)
def test_only_annotations_are_added(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path)
    plain = generate(folder, Options(name="made")).text
    typed = generate(folder, Options(name="made", typed=True)).text
    assert bare(typed) == bare(plain)
    assert formatted(typed) == typed, typed
    assert not complaints(typed, SELECT)
    for node in ast.walk(ast.parse(typed)):
        if isinstance(node, ast.FunctionDef):
            every = [*node.args.args, node.args.vararg, node.args.kwarg]
            named = [each for each in every if each and each.arg != "self"]
            assert node.returns, node.name
            assert all(each.annotation for each in named), node.name
    (tmp_path / "made.py").write_text(typed)
    assert load_module(tmp_path / "made.py").Model


@pytest.mark.oracle("mypy")
def test_a_type_checker_accepts_them(tmp_path: Path) -> None:
    if not INSTALLED:
        pytest.skip("mypy finds burnish only where it is installed: pip install .")
    for number, name in enumerate(NETWORKS):
        module = f"network{number}"
        made = generate(saved(name, tmp_path), Options(name=module, typed=True))
        (tmp_path / f"{module}.py").write_text(made.text)
    files = sorted(map(str, tmp_path.glob("*.py")))
    command = [sys.executable, "-m", "mypy", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
