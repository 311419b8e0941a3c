"""Folders of Hugging Face: configurations, indexes of shards, shards, tokenizers."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from burnish.codegen import pipeline
from burnish.codegen.architectures.families import model_types
from burnish.codegen.cli import _weights
from burnish.codegen.errors import ConversionError
from burnish.codegen.tools import inspect_model
from burnish.errors import BurnishError
from burnish.serialize import load_file, to_bytes
from tests.fuzz.changes import changed_bytes, changed_json
from tests.fuzz.harness import Files as Held
from tests.harness.small_gpt2 import write_gpt2

#: Keys of most configurations, tiny.
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 24,
    "vocab_size": 50,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "hidden_act": "gelu",
    "tie_word_embeddings": True,
    "image_size": 8,
    "patch_size": 4,
    "num_channels": 3,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 2,
    "layer_norm_epsilon": 1e-6,
    "torch_dtype": "float32",
}


class Files:
    """A folder with a configuration, and weights that may fit."""

    def seeds(self) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "gpt2")
            write_gpt2(folder)
            whole = {path.name: path.read_bytes() for path in folder.iterdir()}
            arrays = load_file(folder / "model.safetensors")
            names = list(arrays)
            shards = {
                f"model-0000{i}-of-00002.safetensors": to_bytes(
                    {key: arrays[key] for key in names[i - 1 :: 2]}, {"format": "pt"}
                )
                for i in (1, 2)
            }
        places = {
            key: f"model-0000{i % 2 + 1}-of-00002.safetensors"
            for i, key in enumerate(names)
        }
        index = json.dumps({"metadata": {"total_size": 1}, "weight_map": places})
        parts = {"model.safetensors.index.json": index.encode(), **shards}
        sharded = {k: v for k, v in whole.items() if k != "model.safetensors"} | parts
        others = [
            {
                "config.json": json.dumps({"model_type": kind, **SIZES}).encode(),
                "model.safetensors": whole["model.safetensors"],
            }
            for kind in model_types()
        ]
        return [whole, sharded, sharded, parts, *others]

    def case(self, rng: random.Random, seeds: list[Any]) -> Held:
        files = dict(rng.choice(seeds[:4] if rng.random() < 0.6 else seeds))
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice([n for n in files if rng.random() < 0.9] or list(files))
            change = changed_json if name.endswith(".json") else changed_bytes
            files[name] = change(files[name], rng)
        return files

    def attempt(self, folder: Path, out: Path) -> str:
        try:
            made = pipeline.generate(folder)
            compile(made.text, "made", "exec", dont_inherit=True)
            pipeline.write(made, out)
            went = "source"
        except (ConversionError, BurnishError) as error:
            went = type(error).__name__
        for look in (inspect_model.inspect, lambda path: _weights.contents(path, True)):
            try:
                look(folder)
            except (ConversionError, BurnishError):
                continue
        return went
