"""Decoding of language models on a GPU: tokens a second, beside PyTorch's compiler.

    python benchmarks/gpu_decoding.py --model gpt2 --batch 1,16
    python benchmarks/gpu_decoding.py --model llama-1b --contenders 4-bit,torch-fp16

Random weights, a prompt of 120 tokens, likeliest tokens from there to 248 positions. A
contender's time is what 96 more tokens take (128 less 32), the least of several rounds.
PyTorch: transformers' model with a static cache, its forward by torch.compile's
reduce-overhead mode, in a loop of its own, which is faster than its `generate`.
"apart": how far logits are from the plain call's in single precision, as a share of
their norm.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from decoding import SHAPES, _sources

PROMPT, FEW, MANY = 120, 32, 128
OURS = {
    # how it decodes, and the bits of quantized weights
    "fp32": ("fp32", 0),
    "fp16": ("fp16", 0),
    "bf16": ("bf16", 0),
    "8-bit": ("fp16", 8),
    "4-bit": ("fp16", 4),
    "fp16-sampled": ("fp16", 0),
}
THEIRS = {"torch-tf32": "float32", "torch-fp16": "float16", "torch-bf16": "bfloat16"}


def ours(model: Any, name: str, batch: int) -> Callable[[int], Any]:
    """A run that generates so many tokens; and the error of logits, printed."""
    from burnish import Tensor
    from burnish.generation import Cache, Decoder, generate

    precision, _ = OURS[name]
    ids = np.random.default_rng(0).integers(0, 1000, (batch, PROMPT))
    decoder = Decoder(model, precision)
    own, plain = Cache(256), Cache(256)
    prompt = Tensor(ids).to("cuda")
    decoder(prompt, cache=own), model(prompt, cache=plain)
    new = prompt[:, :1]
    for _ in range(3):
        a, b = decoder(new, cache=own).numpy(), model(new, cache=plain).numpy()
    apart = np.linalg.norm(a - b) / np.linalg.norm(b)
    print(f"    {name}: {decoder.explain()}; apart {apart:.1e}", flush=True)
    more: dict[str, Any] = {}
    if name.endswith("sampled"):
        more = {"do_sample": True, "temperature": 0.8, "top_k": 50, "top_p": 0.9}

    def run(count: int) -> Any:
        return generate(model, ids, count, compile=decoder, **more).numpy()

    return run


def theirs(model: str, name: str, batch: int) -> Callable[[int], Any]:
    import torch
    import transformers

    torch._dynamo.reset()
    torch.backends.cuda.matmul.allow_tf32 = True
    kind = getattr(transformers, SHAPES[model][0])
    with torch.device("cuda"):
        net = kind(kind.config_class(**SHAPES[model][1])).eval()
    net = net.to(getattr(torch, THEIRS[name]))
    ids = torch.randint(0, 1000, (batch, PROMPT), device="cuda")
    cache = transformers.StaticCache(config=net.config, max_cache_len=256)
    step = torch.compile(net.forward, mode="reduce-overhead", fullgraph=False)
    with torch.no_grad():
        net(ids, past_key_values=cache, use_cache=True)

    def run(count: int) -> Any:
        for layer in cache.layers:
            layer.cumulative_length.fill_(PROMPT)
        token = ids[:, -1:].clone()
        with torch.no_grad():
            for _ in range(count):
                made = step(input_ids=token, past_key_values=cache, use_cache=True)
                token = made.logits[:, -1:].argmax(-1).clone()
        return token.cpu()

    return run


def seconds(run: Callable[[int], Any], rounds: int) -> float:
    """What a token takes: from the least times of many and of few."""
    run(MANY), run(FEW)
    best = {FEW: float("inf"), MANY: float("inf")}
    for _ in range(rounds):
        for count in best:
            start = time.perf_counter()
            run(count)
            best[count] = min(best[count], time.perf_counter() - start)
    return (best[MANY] - best[FEW]) / (MANY - FEW)


def made(model: str, folder: str) -> Any:
    """Our model with random weights, on the GPU."""
    import cupy

    sys.path.insert(0, folder)
    from decoded import Model  # type: ignore[import-not-found]

    net = Model(**SHAPES[model][2]).to("cuda").valid()
    for param in {id(p): p for p in net.parameters()}.values():
        if len(param.shape) > 1:
            param.assign(
                cupy.random.standard_normal(param.shape, np.float32) * np.float32(0.02)
            )
    return net


def quantized(net: Any, bits: int) -> None:
    from burnish.lowbit import Level, QuantScheme

    for param in {id(p): p for p in net.parameters()}.values():
        if len(param.shape) > 1:
            param.assign(
                param.quantize(QuantScheme(f"q{bits}s", level=Level.block(32)))
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=SHAPES, default="gpt2")
    parser.add_argument("--contenders", default=",".join([*OURS, *THEIRS]))
    parser.add_argument("--batch", default="1,16")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    names = options.contenders.split(",")
    if unknown := set(names) - {*OURS, *THEIRS}:
        parser.error(
            f"expected contenders of {', '.join([*OURS, *THEIRS])}, got {unknown}"
        )
    with tempfile.TemporaryDirectory() as folder:
        if set(names) & set(OURS):
            _sources(options.model, Path(folder))
        net, held = None, 0
        for name in sorted(
            names, key=lambda n: OURS.get(n, ("", 99))[1] or (0 if n in OURS else 99)
        ):
            if name in OURS:
                bits = OURS[name][1]
                if net is None or (bits and bits != held):
                    net = made(options.model, folder)
                    held = bits
                    if bits:
                        quantized(net, bits)
            else:
                net = None
            for batch in map(int, options.batch.split(",")):
                gc.collect()
                try:
                    run = (
                        ours(net, name, batch)
                        if name in OURS
                        else theirs(options.model, name, batch)
                    )
                    took = seconds(run, options.rounds)
                except Exception as error:
                    print(
                        f"{options.model} {name} batch {batch}: {error!r}"[:300],
                        flush=True,
                    )
                    continue
                print(
                    f"{options.model:9} {name:13} batch {batch:2}  {took * 1e3:7.3f} ms"
                    f" a step  {batch / took:9.0f} tokens/s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
