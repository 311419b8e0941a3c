"""Every family of layers beside PyTorch's, forward, and forward with gradients.

    python benchmarks/layers.py [--threads 1] [--only TEXT] [--rounds 7] [--own-time]

float32, the same weights and inputs; the numbers are compared before they are timed.
What is printed: milliseconds of each (the processor's own with --own-time, for one
thread), and PyTorch's time divided by Burnish's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from beside import Timing, limit_threads, measure, report

# (name, arguments, shape of x)
LAYERS: tuple[tuple[Any, ...], ...] = (
    ("Linear", (512, 512), (256, 512)),
    ("Linear", (384, 1536), (8, 128, 384)),
    ("Linear", (64, 10), (64, 64)),
    ("Conv1d", (64, 64, 3, 1, 1), (8, 64, 1000)),
    ("Conv1d", (256, 256, 31, 1, 15, 1, 256), (4, 256, 500)),
    ("Conv2d", (1, 8, 3), (64, 1, 28, 28)),
    ("Conv2d", (64, 64, 3, 1, 1), (1, 64, 56, 56)),
    ("Conv2d", (64, 64, 3, 1, 1), (8, 64, 56, 56)),
    ("Conv2d", (256, 256, 3, 1, 1), (8, 256, 14, 14)),
    ("Conv2d", (64, 128, 3, 2, 1), (8, 64, 56, 56)),
    ("Conv2d", (256, 64, 1), (8, 256, 56, 56)),
    ("Conv2d", (512, 512, 1), (8, 512, 7, 7)),
    ("Conv2d", (256, 512, 1, 2), (8, 256, 28, 28)),
    ("Conv2d", (3, 64, 7, 2, 3), (4, 3, 224, 224)),
    ("Conv2d", (64, 64, 3, 1, 2, 2), (4, 64, 56, 56)),
    ("Conv2d", (128, 128, 3, 1, 1, 1, 32), (4, 128, 28, 28)),
    ("Conv2d", (128, 128, 3, 1, 1, 1, 4), (4, 128, 28, 28)),
    ("Conv2d", (96, 96, 3, 1, 1, 1, 96), (8, 96, 56, 56)),
    ("Conv2d", (96, 96, 3, 2, 1, 1, 96), (8, 96, 56, 56)),
    ("Conv2d", (192, 192, 7, 1, 3, 1, 192), (4, 192, 28, 28)),
    ("Conv3d", (16, 32, 3, 1, 1), (2, 16, 16, 32, 32)),
    ("ConvTranspose1d", (64, 32, 4, 2, 1), (8, 64, 500)),
    ("ConvTranspose2d", (128, 64, 4, 2, 1), (4, 128, 28, 28)),
    ("ConvTranspose2d", (64, 64, 2, 2), (4, 64, 56, 56)),
    ("ConvTranspose3d", (32, 16, 2, 2), (1, 32, 8, 16, 16)),
    ("BatchNorm1d", (512,), (256, 512)),
    ("BatchNorm2d", (64,), (16, 64, 56, 56)),
    ("BatchNorm3d", (16,), (2, 16, 16, 32, 32)),
    ("LayerNorm", (384,), (8, 128, 384)),
    ("LayerNorm", (768,), (32, 768)),
    ("RMSNorm", (384,), (8, 128, 384)),
    ("GroupNorm", (8, 64), (8, 64, 56, 56)),
    ("InstanceNorm2d", (64,), (8, 64, 56, 56)),
    *(
        (name, arguments, (16, 64, 56, 56))
        for name, *arguments in (
            *(("ReLU",), ("ReLU6",), ("LeakyReLU", 0.1), ("PReLU",), ("ELU",)),
            *(("CELU",), ("SELU",), ("GELU",), ("GELU", "tanh"), ("SiLU",)),
            *(("Mish",), ("Sigmoid",), ("Tanh",), ("Softplus",), ("Softsign",)),
            *(("LogSigmoid",), ("Hardswish",), ("Hardsigmoid",), ("GLU", 1)),
        )
    ),
    ("GELU", (), (8, 128, 1536)),
    ("ReLU", (), (64, 128)),
    ("Softmax", (-1,), (8, 12, 128, 128)),
    ("Softmax", (1,), (8, 64, 28, 28)),
    ("LogSoftmax", (-1,), (256, 1000)),
    ("MaxPool1d", (2,), (16, 64, 1000)),
    ("MaxPool2d", (2,), (16, 64, 56, 56)),
    ("MaxPool2d", (3, 2, 1), (8, 64, 112, 112)),
    ("MaxPool2d", (3, 1, 1), (8, 64, 28, 28)),
    ("MaxPool3d", (2,), (2, 16, 16, 32, 32)),
    ("AvgPool1d", (2,), (16, 64, 1000)),
    ("AvgPool2d", (2,), (16, 64, 56, 56)),
    ("AvgPool2d", (3, 2, 1), (8, 64, 112, 112)),
    ("AvgPool2d", (3, 1, 1), (8, 64, 28, 28)),
    ("AvgPool3d", (2,), (2, 16, 16, 32, 32)),
    ("AdaptiveAvgPool2d", (1,), (16, 512, 7, 7)),
    ("AdaptiveAvgPool2d", (8,), (64, 16, 24, 24)),
    ("AdaptiveAvgPool2d", (5,), (16, 64, 28, 28)),
    ("AdaptiveMaxPool2d", (8,), (64, 16, 24, 24)),
    ("AdaptiveMaxPool2d", (5,), (16, 64, 28, 28)),
    ("LSTM", (128, 256), (64, 32, 128)),
    ("LSTM", (32, 64), (100, 4, 32)),
    ("GRU", (128, 256), (64, 32, 128)),
    ("GRU", (32, 64), (100, 4, 32)),
    ("RNN", (128, 256), (64, 32, 128)),
    ("RNN", (32, 64), (100, 4, 32)),
    ("Dropout", (0.2,), (16, 64, 28, 28)),
    ("Upsample", (None, 2), (8, 64, 28, 28)),
    ("Upsample", (None, 2, "bilinear"), (8, 64, 28, 28)),
    ("Upsample", (None, 2, "bicubic"), (2, 16, 56, 56)),
    ("MultiheadAttention", (256, 8), (128, 8, 256)),
)


def functions() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any], Any]]:
    """(name, Burnish's, PyTorch's, inputs); floating inputs get gradients."""
    import torch
    from torch.nn import functional as F

    from burnish import nn, ops

    rng = np.random.default_rng(0)

    def f(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    def i(high: int, *shape: int) -> np.ndarray:
        return rng.integers(0, high, shape)

    heads = [f(8, 8, 128, 32) for _ in range(3)]
    attention = ops.scaled_dot_product_attention
    yield "sdpa", attention, F.scaled_dot_product_attention, heads
    yield (
        "sdpa causal",
        lambda q, k, v: attention(q, k, v, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        heads,
    )
    words = i(30000, 8, 128)
    table = f(30000, 384)
    yield (
        "embedding",
        lambda w: ops.embedding(words, w),
        _torch_embedding(words),
        [table],
    )
    yield (
        "cross_entropy",
        nn.cross_entropy,
        F.cross_entropy,
        [
            f(256, 1000),
            i(1000, 256),
        ],
    )
    yield (
        "cross_entropy",
        nn.cross_entropy,
        F.cross_entropy,
        [
            f(4, 21, 64, 64),
            i(21, 4, 64, 64),
        ],
    )
    yield "cross_entropy", nn.cross_entropy, F.cross_entropy, [f(64, 10), i(10, 64)]
    yield "mse_loss", nn.mse_loss, F.mse_loss, [f(256, 1000), f(256, 1000)]
    yield "l1_loss", nn.l1_loss, F.l1_loss, [f(256, 1000), f(256, 1000)]
    yield (
        "smooth_l1_loss",
        nn.smooth_l1_loss,
        F.smooth_l1_loss,
        [
            f(256, 1000),
            f(256, 1000),
        ],
    )
    yield (
        "bce_with_logits",
        nn.binary_cross_entropy_with_logits,
        F.binary_cross_entropy_with_logits,
        [f(256, 1000), rng.random((256, 1000)).astype(np.float32)],
    )
    picked = i(1000, 500, 256)
    yield (
        "gather",
        lambda x: ops.gather_elements(x, picked, axis=0),
        lambda x: x.gather(0, torch.from_numpy(picked)),
        [f(1000, 256)],
    )
    yield (
        "scatter_add",
        lambda x, u: ops.scatter_elements(x, picked, u, axis=0, reduction="add"),
        lambda x, u: x.scatter_add(0, torch.from_numpy(picked), u),
        [f(1000, 256), f(500, 256)],
    )
    rows = i(1000, 5000)
    yield (
        "index_select",
        lambda x: ops.take(x, rows, 0),
        lambda x: x.index_select(0, torch.from_numpy(rows)),
        [f(1000, 64)],
    )
    yield (
        "index_add",
        lambda x, u: ops.scatter_rows(x, rows, u, reduction="add"),
        lambda x, u: x.index_add(0, torch.from_numpy(rows), u),
        [f(1000, 64), f(5000, 64)],
    )
    square = [rng.permutation(256000).reshape(256, 1000).astype(np.float32) / 1e5]
    yield "cumsum rows", _cum(ops, -1), lambda x: x.cumsum(-1), square
    yield "cumsum columns", _cum(ops, 0), lambda x: x.cumsum(0), square
    yield "sort", lambda x: ops.sort(x), lambda x: x.sort(-1)[0], square
    yield "topk", lambda x: ops.top_k(x, 5)[0], lambda x: x.topk(5)[0], square
    yield "argmax", lambda x: ops.arg_max(x, axis=-1), lambda x: x.argmax(-1), square
    yield "sum", lambda x: x.sum(axis=-1), lambda x: x.sum(-1), square
    yield "mean", lambda x: x.mean(axis=0), lambda x: x.mean(0), square
    yield "max", lambda x: x.max(axis=-1), lambda x: x.amax(-1), square
    yield (
        "var",
        lambda x: ops.var(x, axis=-1, correction=1),
        lambda x: x.var(-1),
        [f(256, 1000)],
    )
    yield "matmul", ops.matmul, torch.matmul, [f(512, 512), f(512, 512)]
    yield "matmul batched", ops.matmul, torch.matmul, [f(64, 128, 64), f(64, 64, 128)]
    for equation, *shapes in (
        ("bij,bjk->bik", (32, 64, 64), (32, 64, 64)),
        ("bhid,bhjd->bhij", (8, 8, 128, 32), (8, 8, 128, 32)),
        ("bi,ij,bj->b", (64, 128), (128, 128), (64, 128)),
    ):
        yield (
            f"einsum {equation}",
            *_einsum(ops, torch, equation),
            [f(*shape) for shape in shapes],
        )
    two = [f(16, 64, 56, 56), f(64, 1, 1)]
    yield "add channels", ops.add, torch.add, two
    yield "mul channels", ops.mul, torch.mul, two
    for name in ("exp", "log1p", "sqrt", "sin", "erf"):
        yield name, getattr(ops, name), getattr(torch, name), [abs(f(64, 64, 256))]


def _torch_embedding(words: np.ndarray) -> Callable[..., Any]:
    from torch import from_numpy
    from torch.nn import functional as F

    return lambda w: F.embedding(from_numpy(words), w)


def _cum(ops: Any, axis: int) -> Callable[..., Any]:
    return lambda x: ops.cum_sum(x, axis=axis)


def _einsum(ops: Any, torch: Any, equation: str) -> tuple[Any, Any]:
    return (
        lambda *a: ops.einsum(equation, *a),
        lambda *a: torch.einsum(equation, *a),
    )


def layers() -> Iterator[tuple[str, Any, Any, Any]]:
    """(name, Burnish's layer, PyTorch's with the same weights, inputs)."""
    import torch

    from burnish import nn

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    for name, arguments, shape in LAYERS:
        options = {"approximate": arguments[0]} if name == "GELU" and arguments else {}
        given = () if options else arguments
        theirs = getattr(torch.nn, name)(*given, **options)
        ours = getattr(nn, name)(*given, **options)
        if theirs.state_dict():
            ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
        x = rng.normal(size=shape).astype(np.float32)
        inputs = [x] * (3 if name == "MultiheadAttention" else 1)
        words = ", ".join(map(str, arguments))
        yield f"{name}({words}) {'x'.join(map(str, shape))}", ours, theirs, inputs


def timings(only: str, rounds: int, clock: Callable[[], float]) -> Iterator[Timing]:
    import itertools

    for name, ours, theirs, inputs in itertools.chain(layers(), functions()):
        if only.lower() not in name.lower():
            continue
        for direction in (_forward, _backward):
            pair = direction(ours, theirs, inputs)
            if pair is not None:
                kind = direction.__name__.strip("_")[:3]
                yield measure(f"{name} {kind}", *pair, rounds, clock)


def _forward(ours: Any, theirs: Any, inputs: Any) -> Any:
    """Inference: no graph on either side."""
    import torch

    from burnish import Tensor

    mine = [Tensor(a) for a in inputs]
    peers = [torch.from_numpy(a) for a in inputs]
    ours = ours.to("cpu").valid() if hasattr(ours, "valid") else ours
    if isinstance(theirs, torch.nn.Module):
        theirs.eval()

    def run() -> Any:
        with torch.no_grad():
            return theirs(*peers)

    _same(_first(ours(*mine)), _first(run()))
    return lambda: ours(*mine), run


def _backward(ours: Any, theirs: Any, inputs: Any) -> Any:
    """Training: the value, then the gradients of every float in it."""
    import torch

    from burnish import Tensor

    floats = [a.dtype == np.float32 for a in inputs]
    mine = [
        Tensor(a).require_grad() if f else Tensor(a)
        for a, f in zip(inputs, floats, strict=True)
    ]
    peers = [
        torch.from_numpy(a).requires_grad_(f)
        for a, f in zip(inputs, floats, strict=True)
    ]
    if isinstance(theirs, torch.nn.Module):
        theirs.train()
        ours = ours.to("cpu:autodiff")
    value = _first(theirs(*peers))
    if not value.requires_grad:
        return None
    g = np.random.default_rng(1).normal(size=tuple(value.shape)).astype(np.float32)
    peer_g = torch.from_numpy(g)
    mine_g = Tensor(g)
    weights = list(theirs.parameters()) if isinstance(theirs, torch.nn.Module) else []
    leaves = [p for p in peers if p.requires_grad] + weights

    def run() -> Any:
        return torch.autograd.grad(_first(theirs(*peers)), leaves, peer_g)

    def our_run() -> Any:
        return _first(ours(*mine)).backward(mine_g)

    found, wanted = our_run(), run()
    if "Dropout" not in type(theirs).__name__:
        for one, other in zip(
            [m for m, f in zip(mine, floats, strict=True) if f], wanted, strict=False
        ):
            _same(one.grad(found), other)
    return our_run, run


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _same(ours: Any, theirs: Any) -> None:
    want = theirs.detach().numpy()
    scale = float(abs(want).max()) or 1
    np.testing.assert_allclose(ours.numpy(), want, 1e-3, 1e-4 * scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--own-time", action="store_true")
    options = parser.parse_args()
    limit_threads(options.threads)
    clock = time.process_time if options.own_time else time.perf_counter
    report(timings(options.only, options.rounds, clock))


if __name__ == "__main__":
    main()
