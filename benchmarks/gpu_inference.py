"""Inference on a GPU, `burnish.compile` beside `torch.compile`, in turn in one run.

    python benchmarks/gpu_inference.py [--batch 1,32] [--precision tf32,bf16,fp16]
        [--only TEXT] [--rounds 50] [--plans]

Networks of published shapes with random weights, the same ones in both. For each
precision, a process for each network and batch builds its contenders, all at the same
time, with one thread of the compiler each; then one process after another times them,
in turn, and the next precision follows. torch.compile is the better of its
reduce-overhead mode and the same with freezing, without TF32 in fp32; in half precision
its images are channels-last. What is printed: milliseconds (the median, by events of
the GPU), the ratio of theirs to ours, and how far all are from float64, as a share of
the norm; at the end of a precision the geometric mean and the least of its ratios.
--plans prints the steps of our plans too.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import networks
import numpy as np
import sequences
from gpu import WORDS, allowed, bert

Makes = Callable[[Any, Any], Any]


def whisper(nn: Any, functions: Any) -> Any:
    """Whisper tiny's encoder: (N, 80, 3000) -> (N, 1500, 384)"""
    stack = sequences.blocks_of(nn, functions, 4, 384, 6, False, 0)

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv1d(80, 384, 3, padding=1)
            self.conv2 = nn.Conv1d(384, 384, 3, 2, 1)
            self.places = nn.Embedding(1500, 384)
            self.blocks = stack
            self.norm = nn.LayerNorm(384)

        def forward(self, x: Any, places: Any) -> Any:
            x = functions.gelu(self.conv2(functions.gelu(self.conv1(x))))
            return self.norm(self.blocks(x.swapaxes(1, 2) + self.places(places)))

    return Model()


def encoder(width: int, heads: int, depth: int) -> Makes:
    return lambda nn, f: bert(
        nn, f.gelu, f.scaled_dot_product_attention, width, heads, depth
    )


def vit(nn: Any, functions: Any) -> Any:
    return sequences.vit(nn, functions, 224, 16, 768, 12, 12)


def images(batch: int, size: int = 224) -> list[Any]:
    return [_normal(batch, 3, size, size)]


def sentences(batch: int) -> list[Any]:
    words = np.random.default_rng(0).integers(0, WORDS, (batch, 128))
    places = np.arange(128)[None].repeat(batch, 0)
    mask = np.zeros((batch, 1, 1, 128), np.float32)
    return [words, places, np.zeros((batch, 128), np.int64), mask]


def _normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


NETWORKS: dict[str, tuple[Makes, Callable[[int], list[Any]]]] = {
    "ResNet-50": (lambda nn, f: networks.resnet50(nn, 1000), images),
    "MobileNetV2": (lambda nn, f: networks.mobilenet_v2(nn, 1000), images),
    "ConvNeXt-T": (lambda nn, f: networks.convnext_t(nn, 1000), images),
    "ViT-B/16": (vit, lambda batch: [*images(batch), np.arange(196)]),
    "BERT-base, 128 words": (encoder(768, 12, 12), sentences),
    "MiniLM, 128 words": (encoder(384, 12, 6), sentences),
    "Whisper tiny's encoder": (
        whisper,
        lambda batch: [_normal(batch, 80, 3000), np.arange(1500)],
    ),
    "U-Net, 128 x 128": (networks.unet, lambda batch: images(batch, 128)),
}


class Contenders:
    """One network in both libraries, for arguments of one batch and one precision."""

    def __init__(self, name: str, batch: int, precision: str):
        import torch

        import burnish
        from burnish import Tensor, nn, ops

        torch.manual_seed(0)
        make, given = NETWORKS[name]
        functional = torch.nn.functional
        theirs = make(torch.nn, _functions(functional, torch.cat)).eval()
        ours = make(
            nn, _functions(ops, lambda parts, axis: ops.concat(parts, axis=axis))
        )
        ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
        arrays = given(batch)
        x = [Tensor(array).to("cuda") for array in arrays]
        z = [torch.from_numpy(array).cuda() for array in arrays]
        allowed(precision != "fp32")
        torch._dynamo.config.recompile_limit = 64  # every kind has entries of its own
        peer = theirs.cuda()
        with torch.no_grad():
            exact = copy.deepcopy(peer).double()
            wanted = exact(*(a.double() if a.is_floating_point() else a for a in z))
        if precision in ("fp16", "bf16"):
            half = torch.float16 if precision == "fp16" else torch.bfloat16
            peer, z = (
                peer.to(half),
                [a.to(half) if a.is_floating_point() else a for a in z],
            )
            if z[0].ndim == 4:
                peer = peer.to(memory_format=torch.channels_last)
                z[0] = z[0].contiguous(memory_format=torch.channels_last)
        fast = burnish.compile(ours.to("cuda").valid(), precision=precision)
        self.runs: dict[str, Callable[[], Any]] = {"burnish": lambda: fast(*x)}
        self.plan = lambda: fast.plan(*x)
        self.apart = [_apart(fast(*x).numpy(), wanted)]
        for freezing in (False, True):
            quick = torch.compile(copy.deepcopy(peer), mode="reduce-overhead")

            def run(quick: Any = quick) -> Any:
                with torch.no_grad():
                    return quick(*z)

            try:
                with torch._inductor.config.patch(freezing=freezing):
                    made = [run() for _ in range(4)][-1]
            except Exception as error:  # a compiler that gives up
                print(f"{name}: {type(error).__name__}: {error}".splitlines()[0])
                continue
            self.apart.append(_apart(made.float().cpu().numpy(), wanted))
            self.runs["frozen" if freezing else "reduce-overhead"] = run


def _functions(module: Any, cat: Any) -> Any:
    names = ("gelu", "relu", "scaled_dot_product_attention")
    return SimpleNamespace(cat=cat, **{name: getattr(module, name) for name in names})


def _apart(made: Any, wanted: Any) -> float:
    wanted = wanted.cpu().numpy()
    return float(np.linalg.norm(made - wanted) / np.linalg.norm(wanted))


def milliseconds(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median of each, in turn."""
    import cupy

    times: dict[str, list[float]] = {name: [] for name in runs}
    for i in range(rounds + 10):
        for name, run in runs.items():
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            cupy.cuda.Device().synchronize()
            start.record()
            run()
            end.record()
            end.synchronize()
            if i >= 10:
                times[name].append(cupy.cuda.get_elapsed_time(start, end))
    return {name: float(np.median(each)) for name, each in times.items()}


def work(name: str, batch: int, options: Any, turn: Any) -> None:
    """Print the row of a network and a batch; `turn` has its ratio then."""
    ready, lock, ratios, precision = turn
    try:
        each = Contenders(name, batch, precision)
    finally:
        ready.wait()  # nothing is compiled while others are timed
    with lock:
        times = milliseconds(each.runs, options.rounds)
        best = min(time for who, time in times.items() if who != "burnish")
        row = "  ".join(f"{who} {time:.3f}" for who, time in times.items())
        apart = ", ".join(f"{error:.1e}" for error in each.apart)
        ratios.append(best / times["burnish"])
        print(
            f"{name:22} {batch:3} {precision}  {row}  {ratios[-1]:.2f}  apart {apart}",
            flush=True,
        )
        if options.plans:
            print(each.plan(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", default="1,32")
    parser.add_argument("--precision", default="tf32,bf16,fp16")
    parser.add_argument("--only", default="", help="rows whose name has one of these")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--plans", action="store_true")
    options = parser.parse_args()
    options.batch = [int(each) for each in options.batch.split(",")]
    options.precision = options.precision.split(",")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    chosen = [n for n in NETWORKS if any(p in n for p in options.only.split(","))]
    kinds = [(name, batch) for name in chosen for batch in options.batch]
    with context.Manager() as manager:
        for precision in options.precision:
            ratios = manager.list()
            turn = context.Barrier(len(kinds)), context.Lock(), ratios, precision
            started = [
                context.Process(target=work, args=(*kind, options, turn))
                for kind in kinds
            ]
            for each in started:
                each.start()
            for each in started:
                each.join()
            if ratios:
                mean, least = np.exp(np.mean(np.log(ratios))), min(ratios)
                print(
                    f"{precision}: geometric mean {mean:.2f}, least {least:.2f},"
                    f" {len(ratios)} of {len(kinds)} rows",
                    flush=True,
                )


if __name__ == "__main__":
    main()
