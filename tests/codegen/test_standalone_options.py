"""One file with every other option, and of folders: the numbers of the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnish import seed
from burnish.codegen.pipeline import Options, generate, write
from burnish.models._gallery import BY_MODULE
from burnish.models._numbers import feeds
from tests.codegen.test_standalone import outputs_of, same_bits
from tests.harness.alone import alone, run
from tests.harness.imported import load_class
from tests.harness.small_gpt2 import write_gpt2

MNIST = BY_MODULE["mnist"]
OPTIONS: list[dict[str, Any]] = [
    {"quantize": "q8"},
    {"quantize": "q4", "embed": True},
    {"half": True},
    {"half": True, "embed": True},
    {"typed": True, "embed": True},
    {"typed": True, "quantize": "q4"},
]
IDS = np.array([[3, 7, 9, 4], [1, 5, 2, 8]], np.int64)


def both(
    model: Path, calls: list[list[np.ndarray]], folder: Path, **options: Any
) -> None:
    """Assert that one file and the package give the same bits."""
    embed = options.pop("embed", False)
    source, weights = write(generate(model, Options(**options)), folder / "package")
    whole = load_class(source).from_file(weights)
    one = Options(standalone=True, embed=embed, **options)
    source, *_ = write(generate(model, one), folder / "one")
    expected = [outputs_of(whole, call) for call in calls]
    assert same_bits(alone(source, calls, "embedded" if embed else "file"), expected)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: "-".join(given))
def test_mnist_with_other_options(options: dict[str, Any], tmp_path: Path) -> None:
    calls = [list(feed.values()) for feed in feeds("mnist")]
    both(MNIST.file, calls, tmp_path, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"embed": True}, {"quantize": "q8", "embed": True}, {"typed": True}],
    ids=lambda given: "-".join(given) or "plain",
)
def test_a_folder_with_other_options(options: dict[str, Any], tmp_path: Path) -> None:
    write_gpt2(tmp_path / "gpt2")
    both(tmp_path / "gpt2", [[IDS]], tmp_path, **options)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["BertModel", "LlamaForCausalLM", "T5Model"])
def test_folders_of_transformers(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    configs = {
        "BertModel": transformers.BertConfig(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
        ),
        "LlamaForCausalLM": transformers.LlamaConfig(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=32,
        ),
        "T5Model": transformers.T5Config(
            vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2
        ),
    }
    network = getattr(transformers, kind)(configs[kind]).eval()
    network.save_pretrained(tmp_path / "network")
    inputs = [IDS, np.ones_like(IDS), IDS] if kind == "T5Model" else [IDS]
    both(tmp_path / "network", [inputs], tmp_path)


GENERATE = """
import importlib.util, json
import numpy as np

name, source, choices = sys.argv[1:]
spec = importlib.util.spec_from_file_location(name, source)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
model = module.Model.from_file()
prompt = module.Tensor(np.array([[3, 7, 9]]))
for choice in json.loads(choices):
    module.seed(3)
    print(json.dumps(model.generate(prompt, 6, eos=None, **choice).tolist()))
"""
CHOICES: list[dict[str, Any]] = [
    {},
    {"do_sample": True, "temperature": 20.0},
    {"do_sample": True, "temperature": 20.0, "top_k": 9},
    {"do_sample": True, "temperature": 20.0, "top_p": 0.5},
    {"suppress": [47]},
]


def test_a_language_model_continues_text(tmp_path: Path) -> None:
    write_gpt2(tmp_path / "gpt2")
    source, weights = write(generate(tmp_path / "gpt2"), tmp_path / "package")
    model = load_class(source).from_file(weights)
    expected = []
    for choice in CHOICES:
        seed(3)
        tokens = model.generate(np.array([[3, 7, 9]]), 6, eos=None, **choice)
        expected.append(tokens.tolist())
    assert len({str(tokens) for tokens in expected}) > 2
    one, _ = write(
        generate(tmp_path / "gpt2", Options(standalone=True)), tmp_path / "one"
    )
    printed = run(GENERATE, one.stem, one, json.dumps(CHOICES)).splitlines()
    assert [json.loads(line) for line in printed] == expected
