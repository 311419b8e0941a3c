"""Decoding of language models: milliseconds and tokens a second, beside others.

    python benchmarks/decoding.py                       # GPT-2 small's shape
    python benchmarks/decoding.py --model llama-1b      # 22 layers of width 2048
    python benchmarks/decoding.py --contenders float32,4-bit,transformers --threads 2

Random weights, batch 1, behind a prompt of 32 tokens. Each contender is a process of
its own, one after another, so that one model is in memory at a time; the least median
of several rounds counts. transformers runs eagerly, with a cache that grows or, as
"transformers-static", with one of a fixed size. llama.cpp runs a GGUF file of the same
shape, of floats, Q8_0 or Q4_0; it takes part where llama-cpp-python and gguf are
installed. onnxruntime runs a file of its own fused operators with weights of ours, in
blocks along the inputs; its logits are compared with the plain call's on the numbers
that the file holds ("apart": the difference as a share of their norm). Files are
written by other processes. "share" is what the bytes of the weights that a token reads,
divided by its processor time, are of what a kernel that sums an array reads in such a
time; "peak" is the most memory that a process held.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

PROMPT, TOKENS = 32, 24
SHAPES: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    # class of transformers; its configuration; the same in the words of our template
    "gpt2": (
        "GPT2LMHeadModel",
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
        {"dim": 768, "depth": 12, "heads": 12, "vocab": 50257, "hidden": 3072},
    ),
    "llama-1b": (
        "LlamaForCausalLM",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 22,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "intermediate_size": 5632,
            "vocab_size": 32000,
        },
        {
            "dim": 2048,
            "depth": 22,
            "heads": 32,
            "kv_heads": 4,
            "hidden": 5632,
            "vocab": 32000,
        },
    ),
}
SMALL = {
    "gpt2": {"n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 64},
    "llama-1b": {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 96,
        "vocab_size": 64,
    },
}
BITS = {"float32": 0, "bf16": 0, "8-bit": 8, "4-bit": 4, "plain": 0}
THEIRS = ("transformers", "transformers-static")
ONNX = {"onnxruntime": 0, "onnxruntime-8-bit": 8, "onnxruntime-4-bit": 4}
GGUF = {"llama.cpp": "f32", "llama.cpp-8-bit": "q8_0", "llama.cpp-4-bit": "q4_0"}
CONTENDERS = [*BITS, *THEIRS, *ONNX, *GGUF]
ROOM = 128  # positions that a cache has room for
Stepped = tuple[Callable[[], Any], dict[str, float]]
"""A function that decodes one more token; the bytes that it reads, as "bytes"."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=SHAPES, default="gpt2")
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        print(json.dumps(_stages(options.one)[0](options)))
    elif options.one:
        print(json.dumps(_measured(options)))
    else:
        _compare(parser, options)


def _compare(parser: argparse.ArgumentParser, options: Any) -> None:
    names = options.contenders.split(",")
    if unknown := set(names) - set(CONTENDERS):
        parser.error(f"expected contenders of {', '.join(CONTENDERS)}, got {unknown}")
    missing = [name for name in ("llama_cpp", "gguf") if not find_spec(name)]
    if missing and GGUF.keys() & set(names):
        print(f"without llama.cpp: {' and '.join(missing)} cannot be imported")
        names = [name for name in names if name not in GGUF]
    with tempfile.TemporaryDirectory() as folder:
        _sources(options.model, Path(folder))
        found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for name in names:
            _asked(name, options, folder, "--write")
        for _ in range(options.rounds):
            for name in names:
                found[name].append(_asked(name, options, folder))
    print(
        f"{options.model}, {options.threads} threads; processor's time in parentheses"
    )
    for name, rows in found.items():
        best = {key: min(row[key] for row in rows) for key in rows[0]}
        used = best["cpu"] / options.threads
        speed = best["bytes"] / used / max(row["reads"] for row in rows)
        print(
            f"{name:20}{best['wall'] * 1e3:8.1f} ms ({best['cpu'] * 1e3:.1f})"
            f"{1 / best['wall']:8.1f} tokens/s  share {speed:.2f}"
            f"  peak {best['peak'] / 1e9:.2f} GB"
            + (f"  apart {best['apart']:.0e}" if "apart" in best else "")
        )


def _sources(model: str, folder: Path) -> None:
    """The source of the architecture, from a small checkpoint; sizes are arguments."""
    import transformers

    kind = getattr(transformers, SHAPES[model][0])
    small = kind(kind.config_class(**SMALL[model]))
    small.save_pretrained(folder / "small")
    command = [sys.executable, "-m", "burnish", "generate", str(folder / "small")]
    command += ["--name", "decoded", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def _asked(name: str, options: Any, folder: str, *more: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", name, "--model", options.model]
    command += ["--threads", str(options.threads), "--folder", folder, *more]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ran.returncode:
        sys.exit(f"{name}: {ran.stderr[-2000:]}")
    made: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return made


def _measured(options: Any) -> dict[str, float]:
    """Seconds of a token, wall and processor's, of this process's contender."""
    step, found = _stages(options.one)[1](options)
    walls, times = [], []
    for _ in range(TOKENS):
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        walls.append(time.perf_counter() - wall)
        times.append(time.process_time() - cpu)
    found |= {"wall": median(walls), "cpu": median(times), "peak": _peak()}
    return {**found, "reads": _reads_a_second(options.threads)}


def _stages(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Stepped]]:
    """What writes the file of a contender, and what reads it and gives a step."""
    if name in THEIRS:
        return (lambda options: None), _theirs
    if name in ONNX:
        return _onnx_file, _onnx
    return (_gguf_file, _gguf) if name in GGUF else (_our_file, _ours)


def _peak() -> int:
    """The most bytes that this process held; getrusage's begin with its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024


def _reads_a_second(threads: int) -> float:
    """Bytes that a kernel which sums rows of an array reads in a second."""
    from burnish.kernels import direct
    from burnish.kernels.library import library
    from burnish.kernels.records import REDUCTIONS
    from burnish.kernels.threads import set_num_threads

    if library() is None:
        sys.exit("the share of what kernels read is of kernels: no C compiler here")
    set_num_threads(threads)
    rows, width = 1 << 15, 1 << 12
    x, out = np.ones((rows, width), np.float32), np.empty(rows, np.float32)
    best = float("inf")
    for _ in range(7):
        start = time.process_time()
        direct.launch(
            "reduce", threads, x=x, out=out, mode=REDUCTIONS["sum"], outer=rows,
            width=width, inner=1, scale=1.0,
        )  # fmt: skip
        best = min(best, (time.process_time() - start) / threads)
    return x.nbytes / best


def _model(options: Any) -> Any:
    sys.path.insert(0, options.folder)
    from decoded import Model  # type: ignore[import-not-found]

    return Model(**SHAPES[options.model][2])


def _prompt() -> Any:
    return np.random.default_rng(0).integers(0, 1000, (1, PROMPT))


def _our_file(options: Any) -> None:
    from burnish.lowbit import Level, QuantScheme

    model = _model(options)
    if bits := BITS[options.one]:
        scheme = QuantScheme(f"q{bits}s", level=Level.block(32))
        for param in model.parameters():  # one float weight at a time in memory
            if len(param.shape) > 1:
                param.assign(param.quantize(scheme))
    model.save_file(Path(options.folder, f"{options.one}.safetensors"))


def _ours(options: Any) -> Stepped:
    import burnish
    from burnish.generation import Cache, Decoder

    burnish.set_num_threads(options.threads)
    file = Path(options.folder, f"{options.one}.safetensors")
    model, ids = _model(options).load_file(file), _prompt()
    half = options.one == "bf16"
    decoder = Decoder(model, precision="bf16" if half else "fp32")
    called = model if options.one == "plain" else decoder
    cache = Cache(ROOM)
    called(ids, cache=cache)
    for _ in range(2):
        called(ids[:, :1], cache=cache)
    sizes = {
        id(p): p.nbytes // (2 if half and len(p.shape) > 1 else 1)
        for p in model.parameters()
    }
    size = sum(sizes.values())
    if options.model == "llama-1b":  # of the table of tokens one row is read
        size -= sizes[id(model.model.embed_tokens.weight)]
    return lambda: called(ids[:, :1], cache=cache), {"bytes": size}


def _onnx_file(options: Any) -> float:
    """Write the model, and the logits of the numbers that it holds."""
    import onnx_decoders

    from burnish.generation import Cache

    model, sizes = _model(options), SHAPES[options.model][2]
    file = Path(options.folder, f"{options.one}.onnx")
    size = onnx_decoders.write(file, model, sizes, ONNX[options.one], ROOM)
    cache, ids = Cache(ROOM), _prompt()
    expected = [model(part, cache=cache).numpy()[:, -1] for part in (ids, ids[:, :1])]
    np.save(file.with_suffix(".npy"), np.concatenate(expected))
    file.with_suffix(".bytes").write_text(str(size))
    return size


def _onnx(options: Any) -> Stepped:
    import onnx_decoders

    file = Path(options.folder, f"{options.one}.onnx")
    sizes, ids = SHAPES[options.model][2], _prompt()
    step = onnx_decoders.stepper(file, options.threads, sizes, ROOM)
    made = np.concatenate([step(part)[:, -1] for part in (ids, ids[:, :1])])
    step(ids[:, :1])
    expected = np.load(file.with_suffix(".npy"))
    apart = float(np.linalg.norm(made - expected) / np.linalg.norm(expected))
    size = int(file.with_suffix(".bytes").read_text())
    return lambda: step(ids[:, :1]), {"bytes": size, "apart": apart}


def _gguf_file(options: Any) -> float:
    import gguf_models

    sizes = {"context": 1024, **SHAPES[options.model][2]}
    kind = "llama" if options.model == "llama-1b" else "gpt2"
    file = Path(options.folder, f"{options.one}.gguf")
    size = gguf_models.write(file, kind, sizes, GGUF[options.one])
    file.with_suffix(".bytes").write_text(str(size))
    return size


def _gguf(options: Any) -> Stepped:
    import gguf_models

    file = Path(options.folder, f"{options.one}.gguf")
    step = gguf_models.stepper(file, options.threads, PROMPT, ROOM)
    for _ in range(2):
        step()
    return step, {"bytes": int(file.with_suffix(".bytes").read_text())}


def _theirs(options: Any) -> Stepped:
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    kind = getattr(transformers, SHAPES[options.model][0])
    model = kind(kind.config_class(**SHAPES[options.model][1])).eval()
    ids, cache = torch.randint(0, 1000, (1, PROMPT)), transformers.DynamicCache()
    if options.one == "transformers-static":
        cache = transformers.StaticCache(model.config, max_cache_len=ROOM)

    def step() -> None:
        with torch.no_grad():
            model(ids[:, :1], past_key_values=cache, use_cache=True)

    with torch.no_grad():
        model(ids, past_key_values=cache, use_cache=True)
    for _ in range(2):
        step()
    size = sum(p.numel() * 4 for p in model.parameters())
    if options.model == "llama-1b":
        size -= model.model.embed_tokens.weight.numel() * 4
    return step, {"bytes": size}


if __name__ == "__main__":
    main()
