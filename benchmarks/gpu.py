"""BERT-base's encoder and the guide's training step on a GPU, beside PyTorch's.

    python benchmarks/gpu.py [--rounds 30] [--compiled] [--tf32]

float32 without TF32, the same weights and inputs; the numbers are compared before they
are timed. A run ends when the GPU is done. What is printed: milliseconds (the median)
and the greatest difference, relative to the greatest number. --compiled times
burnish.compile and torch.compile's reduce-overhead mode too; --tf32 lets PyTorch and
burnish.compile round what products multiply.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from training import RATE, cnn

WIDTH, HEADS, DEPTH, WORDS = 768, 12, 12, 30522


def bert(nn: Any, gelu: Any, attend: Any) -> Any:
    """Words (N, T), types (N, T), mask (N, 1, 1, T) to add -> (N, T, 768)"""

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Linear(WIDTH, WIDTH)
            self.key = nn.Linear(WIDTH, WIDTH)
            self.value = nn.Linear(WIDTH, WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.norm1 = nn.LayerNorm(WIDTH, 1e-12)
            self.linear1 = nn.Linear(WIDTH, 4 * WIDTH)
            self.linear2 = nn.Linear(4 * WIDTH, WIDTH)
            self.norm2 = nn.LayerNorm(WIDTH, 1e-12)

        def forward(self, x: Any, mask: Any) -> Any:
            n, t, _ = x.shape
            q, k, v = (
                layer(x).reshape(n, t, HEADS, WIDTH // HEADS).swapaxes(1, 2)
                for layer in (self.query, self.key, self.value)
            )
            y = attend(q, k, v, mask).swapaxes(1, 2).reshape(n, t, WIDTH)
            x = self.norm1(x + self.out(y))
            return self.norm2(x + self.linear2(gelu(self.linear1(x))))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, WIDTH)
            self.positions = nn.Embedding(512, WIDTH)
            self.types = nn.Embedding(2, WIDTH)
            self.norm = nn.LayerNorm(WIDTH, 1e-12)
            for i in range(DEPTH):
                setattr(self, f"layer{i}", Layer())

        def forward(self, words: Any, places: Any, types: Any, mask: Any) -> Any:
            x = self.words(words) + self.positions(places) + self.types(types)
            x = self.norm(x)
            for i in range(DEPTH):
                x = getattr(self, f"layer{i}")(x, mask)
            return x

    return Model()


def milliseconds(run: Callable[[], Any], wait: Callable[[], Any], rounds: int) -> float:
    """The median of so many runs, until the GPU is done."""
    for _ in range(8):
        run()
    wait()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def inference(batch: int, compiled: bool, tf32: bool) -> dict[str, Any]:
    """Runs of the encoder, by whose they are, and how far the numbers are apart."""
    import torch

    import burnish
    from burnish import Tensor, nn, ops

    functional = torch.nn.functional
    theirs = bert(torch.nn, functional.gelu, functional.scaled_dot_product_attention)
    ours = bert(nn, ops.gelu, ops.scaled_dot_product_attention)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    mask = np.where(rng.random((batch, 1, 1, 128)) < 0.9, 0, -1e4).astype(np.float32)
    given = (
        rng.integers(0, WORDS, (batch, 128)),
        np.arange(128)[None].repeat(batch, 0),
        np.zeros((batch, 128), np.int64),
        mask,
    )
    model, peer = ours.to("cuda"), theirs.cuda().eval()
    x = [Tensor(a).to("cuda") for a in given]
    z = [torch.from_numpy(a).cuda() for a in given]

    def other(net: Any = peer) -> Any:
        with torch.no_grad():
            return net(*z)

    near, far = model(*x).numpy(), other().cpu().numpy()
    runs = {"burnish": lambda: model(*x), "torch": other}
    apart = [abs(near - far).max() / abs(far).max()]
    if compiled:
        ours = burnish.compile(model, precision="tf32" if tf32 else "fp32")
        apart.append(abs(ours(*x).numpy() - far).max() / abs(far).max())
        fast = torch.compile(peer, mode="reduce-overhead")
        runs["burnish compiled"] = lambda: ours(*x)
        runs["torch compiled"] = lambda: other(fast)
    return {"runs": runs, "apart": max(apart)}


def training(batch: int, compiled: bool) -> dict[str, Any]:
    """Steps of the guide's network with Adam, and how far the losses are apart."""
    import torch

    from burnish import Tensor, nn, ops, optim

    theirs, ours = cnn(torch.nn, torch.relu), cnn(nn, ops.relu)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    for net in (theirs, ours):
        net.dropout.p = 0.0  # for the comparison: each draws its own masks
    rng = np.random.default_rng(0)
    images = rng.normal(size=(batch, 1, 28, 28)).astype(np.float32)
    labels = rng.integers(0, 10, batch)
    model, peer = ours.to("cuda:autodiff"), theirs.cuda()
    adam = optim.Adam()
    other = torch.optim.Adam(peer.parameters(), RATE, fused=True)
    x, t = Tensor(images).to("cuda"), Tensor(labels).to("cuda")
    x2, t2 = torch.from_numpy(images).cuda(), torch.from_numpy(labels).cuda()

    def our_step() -> Any:
        loss = nn.cross_entropy(model(x), t)
        adam.step(RATE, model, loss.backward())
        return loss

    def their_step(net: Any = peer) -> Any:
        other.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x2), t2)
        loss.backward()
        other.step()
        return loss

    pairs = [(our_step().item(), their_step().item()) for _ in range(5)]
    for net in (model, peer):
        net.dropout.p = 0.5
    runs = {"burnish": our_step, "torch": their_step}
    if compiled:
        fast = torch.compile(peer, mode="reduce-overhead")
        runs["torch compiled"] = lambda: their_step(fast)
    return {"runs": runs, "apart": max(abs(a - b) / b for a, b in pairs)}


def lines(rounds: int, compiled: bool, tf32: bool) -> Iterator[str]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    wait = torch.cuda.synchronize  # the whole device
    for name, made in (
        ("BERT-base, 128 words, batch 1", lambda: inference(1, compiled, tf32)),
        ("BERT-base, 128 words, batch 32", lambda: inference(32, compiled, tf32)),
        ("guide's step, batch 64", lambda: training(64, compiled)),
    ):
        found = made()
        times = {k: milliseconds(f, wait, rounds) for k, f in found["runs"].items()}
        told = "  ".join(f"{whose} {time:.3f}" for whose, time in times.items())
        yield f"{name:32} {told}  apart {found['apart']:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    options = parser.parse_args()
    for line in lines(options.rounds, options.compiled, options.tf32):
        print(line, flush=True)


if __name__ == "__main__":
    main()
