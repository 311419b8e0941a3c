"""Language models with random weights as GGUF files, for llama.cpp.

Floats are drawn; blocks of 8 and 4 bits (Q8_0, Q4_0: a scale in half precision, 32
integers) are random bytes behind one scale, as only their size matters for speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SCALE = 0.002  # of quantized blocks: weights of the size that floats are drawn with
BLOCK = 32
STORED = {"f32": "F32", "q8_0": "Q8_0", "q4_0": "Q4_0"}
CODES = {"q8_0": 32, "q4_0": 16}  # bytes of a block behind its scale


def write(file: Path, kind: str, sizes: dict[str, int], stored: str) -> int:
    """Write a "gpt2" or a "llama"; the bytes of weights that a token reads.

    sizes: dim, depth, heads, kv_heads, hidden, vocab, context.
    """
    import gguf

    writer = gguf.GGUFWriter(file, kind)
    writer.add_context_length(sizes["context"])
    writer.add_embedding_length(sizes["dim"])
    writer.add_block_count(sizes["depth"])
    writer.add_feed_forward_length(sizes["hidden"])
    writer.add_head_count(sizes["heads"])
    writer.add_vocab_size(sizes["vocab"])
    writer.add_tokenizer_model("no_vocab")
    if kind == "llama":
        writer.add_head_count_kv(sizes["kv_heads"])
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_rope_dimension_count(sizes["dim"] // sizes["heads"])
    else:
        writer.add_layer_norm_eps(1e-5)
    rng = np.random.default_rng(0)
    read = 0
    for name, shape in _shapes(kind, sizes):
        if len(shape) == 1 or stored == "f32" or name == "position_embd.weight":
            a = rng.standard_normal(shape, np.float32)
            a *= np.float32(0.02)
            writer.add_tensor(name, a)
        else:
            a = _blocks(rng, shape, CODES[stored])
            given = getattr(gguf.GGMLQuantizationType, STORED[stored])
            writer.add_tensor(name, a, raw_dtype=given)
        is_table = name == "position_embd.weight" or (
            name == "token_embd.weight" and kind == "llama"  # a row of it is read
        )
        read += 0 if is_table else a.nbytes
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return read


def _blocks(rng: Any, shape: tuple[int, ...], codes: int) -> Any:
    """Random quantized rows: bytes (outs, ins / BLOCK * (2 + codes))"""
    outs, ins = shape
    rows = rng.integers(0, 256, (outs, ins // BLOCK, 2 + codes), np.uint8)
    rows[..., :2] = np.frombuffer(np.float16(SCALE).tobytes(), np.uint8)
    return rows.reshape(outs, -1)


def _shapes(kind: str, s: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of a model, by llama.cpp's names; matrices (outs, ins)."""
    dim, hidden = s["dim"], s["hidden"]
    yield "token_embd.weight", (s["vocab"], dim)
    yield "output_norm.weight", (dim,)
    if kind == "llama":
        yield "output.weight", (s["vocab"], dim)
        ends = {"attn_norm": (dim,), "ffn_norm": (dim,)}
        kv = dim // s["heads"] * s["kv_heads"]
        ends |= {"attn_q": (dim, dim), "attn_k": (kv, dim), "attn_v": (kv, dim)}
        ends |= {"attn_output": (dim, dim), "ffn_down": (dim, hidden)}
        ends |= {"ffn_gate": (hidden, dim), "ffn_up": (hidden, dim)}
        biased = False
    else:
        yield "position_embd.weight", (s["context"], dim)
        yield "output_norm.bias", (dim,)
        ends = {"attn_norm": (dim,), "ffn_norm": (dim,)}
        ends |= {"attn_qkv": (3 * dim, dim), "attn_output": (dim, dim)}
        ends |= {"ffn_up": (hidden, dim), "ffn_down": (dim, hidden)}
        biased = True
    for layer in range(s["depth"]):
        for end, shape in ends.items():
            yield f"blk.{layer}.{end}.weight", shape
            if biased:
                yield f"blk.{layer}.{end}.bias", shape[:1]


def stepper(file: Path, threads: int, prompt: int, room: int) -> Any:
    """A function that decodes one more token behind a prompt, by llama.cpp."""
    import llama_cpp

    model = llama_cpp.Llama(
        str(file), n_ctx=room, n_threads=threads, n_threads_batch=threads,
        verbose=False,
    )  # fmt: skip
    model.eval([*range(1, prompt + 1)])
    return lambda: model.eval([1])
