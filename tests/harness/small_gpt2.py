"""A folder as transformers saves one, written without it: GPT-2 with one layer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from burnish.serialize import save_file

CONFIG = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 50,
    "n_positions": 32,
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "eos_token_id": 2,
}
SHAPES = {
    "wte.weight": (50, 16),
    "wpe.weight": (32, 16),
    "h.0.ln_1.weight": (16,),
    "h.0.ln_1.bias": (16,),
    "h.0.attn.c_attn.weight": (16, 48),
    "h.0.attn.c_attn.bias": (48,),
    "h.0.attn.c_proj.weight": (16, 16),
    "h.0.attn.c_proj.bias": (16,),
    "h.0.ln_2.weight": (16,),
    "h.0.ln_2.bias": (16,),
    "h.0.mlp.c_fc.weight": (16, 64),
    "h.0.mlp.c_fc.bias": (64,),
    "h.0.mlp.c_proj.weight": (64, 16),
    "h.0.mlp.c_proj.bias": (16,),
    "ln_f.weight": (16,),
    "ln_f.bias": (16,),
}
WORDS = ("<unk>", "the", "a", "cat", "dog", "sat", "ran", "on", "mat", "and")
TOKENIZER = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {
        "type": "WordLevel",
        "vocab": {w: i for i, w in enumerate((*WORDS, *map(chr, range(945, 985))))},
        "unk_token": "<unk>",
    },
}


def write_gpt2(folder: Path) -> None:
    """config.json, tokenizer.json and random weights in safetensors."""
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    rng = np.random.default_rng(0)
    state = {
        f"transformer.{name}": rng.normal(size=shape).astype(np.float32)
        for name, shape in SHAPES.items()
    }
    save_file(state, folder / "model.safetensors", {"format": "pt"})
