"""BERT-base's encoder and steps of training on a GPU, beside PyTorch's.

    python benchmarks/gpu.py [--rounds 30] [--compiled] [--tf32] [--only TEXT]

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
from networks import cnn, resnet50
from training import RATE

WIDTH, HEADS, DEPTH, WORDS = 768, 12, 12, 30522


def bert(
    nn: Any,
    gelu: Any,
    attend: Any,
    width: int = WIDTH,
    heads: int = HEADS,
    depth: int = DEPTH,
) -> Any:
    """Words (N, T), types (N, T), mask (N, 1, 1, T) to add -> (N, T, width)"""

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Linear(width, width)
            self.key = nn.Linear(width, width)
            self.value = nn.Linear(width, width)
            self.out = nn.Linear(width, width)
            self.norm1 = nn.LayerNorm(width, 1e-12)
            self.linear1 = nn.Linear(width, 4 * width)
            self.linear2 = nn.Linear(4 * width, width)
            self.norm2 = nn.LayerNorm(width, 1e-12)

        def forward(self, x: Any, mask: Any) -> Any:
            n, t, _ = x.shape
            q, k, v = (
                layer(x).reshape(n, t, heads, width // heads).swapaxes(1, 2)
                for layer in (self.query, self.key, self.value)
            )
            y = attend(q, k, v, mask).swapaxes(1, 2).reshape(n, t, width)
            x = self.norm1(x + self.out(y))
            return self.norm2(x + self.linear2(gelu(self.linear1(x))))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, width)
            self.positions = nn.Embedding(512, width)
            self.types = nn.Embedding(2, width)
            self.norm = nn.LayerNorm(width, 1e-12)
            for i in range(depth):
                setattr(self, f"layer{i}", Layer())

        def forward(self, words: Any, places: Any, types: Any, mask: Any) -> Any:
            x = self.words(words) + self.positions(places) + self.types(types)
            x = self.norm(x)
            for i in range(depth):
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


def tuned(nn: Any, gelu: Any, attend: Any) -> Any:
    """BERT-base and a head: what `bert` takes -> (N, 2)"""

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert(nn, gelu, attend)
            self.head = nn.Linear(WIDTH, 2)

        def forward(self, *given: Any) -> Any:
            return self.head(self.bert(*given)[:, 0])

    return Model()


def images(batch: int, channels: int, size: int, classes: int) -> Any:
    """Pictures, and a class of each."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, channels, size, size)).astype(np.float32)
    return (x,), rng.integers(0, classes, batch)


def sentences(batch: int) -> Any:
    """What `bert` takes, and a class of each."""
    rng = np.random.default_rng(0)
    given = (
        rng.integers(0, WORDS, (batch, 128)),
        np.arange(128)[None].repeat(batch, 0),
        np.zeros((batch, 128), np.int64),
        np.zeros((batch, 1, 1, 128), np.float32),
    )
    return given, rng.integers(0, 2, batch)


def training(
    make: Callable[[bool], Any], data: Any, rules: Any, compiled: bool, tf32: bool
) -> dict[str, Any]:
    """Steps of a network, and how far the losses of the first ones are apart.

    make: the network, PyTorch's where True. rules: our optimizer and PyTorch's.
    """
    import torch

    import burnish
    from burnish import Tensor, nn

    theirs, ours = make(True), make(False)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    given, labels = data
    model, peer = ours.to("cuda:autodiff"), theirs.cuda()
    rule, other = rules[0], rules[1](peer.parameters())
    x, t = [Tensor(a).to("cuda") for a in given], Tensor(labels).to("cuda")
    z, t2 = [torch.from_numpy(a).cuda() for a in given], torch.from_numpy(labels).cuda()

    def our_step(x: Any, t: Any, rate: float) -> Any:
        loss = nn.cross_entropy(model(*x), t)
        rule.step(rate, model, loss.backward())
        return loss

    def their_step(net: Any = peer) -> Any:
        other.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(*z), t2)
        loss.backward()
        other.step()
        return loss

    fast = burnish.compile(our_step, precision="tf32" if tf32 else "fp32")
    ours_step = fast if compiled else our_step
    parts = [*model.named_modules(), *peer.named_modules()]
    dropouts = [m for _, m in parts if type(m).__name__ == "Dropout"]
    rates = [m.p for m in dropouts]
    for each in dropouts:
        each.p = 0.0  # for the comparison: each draws its own masks
    pairs = [(ours_step(x, t, RATE).item(), their_step().item()) for _ in range(5)]
    for each, p in zip(dropouts, rates, strict=True):
        each.p = p
    runs = {"burnish": lambda: our_step(x, t, RATE), "torch": their_step}
    if compiled:
        quick = torch.compile(peer, mode="reduce-overhead")
        runs["burnish compiled"] = lambda: fast(x, t, RATE)
        runs["torch compiled"] = lambda: their_step(quick)
    report = fast.explain() if compiled else ""
    apart = max(abs(a - b) / abs(b) for a, b in pairs)
    return {"runs": runs, "apart": apart, "report": report}


def steps(compiled: bool, tf32: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The steps of training that are timed."""
    import torch

    from burnish import nn, ops, optim

    functional = torch.nn.functional

    def run(make: Any, data: Any, rules: Any) -> Callable[[], Any]:
        return lambda: training(make, data(), rules(), compiled, tf32)

    def adam() -> Any:
        return optim.Adam(), lambda p: torch.optim.Adam(p, RATE, fused=True)

    def momentum() -> Any:
        return optim.SGD(momentum=0.9), lambda p: torch.optim.SGD(
            p, RATE, momentum=0.9, fused=True
        )

    def words(theirs: bool) -> Any:
        if theirs:
            attend = functional.scaled_dot_product_attention
            return tuned(torch.nn, functional.gelu, attend)
        return tuned(nn, ops.gelu, ops.scaled_dot_product_attention)

    def digits(theirs: bool) -> Any:
        return cnn(torch.nn, torch.relu) if theirs else cnn(nn, ops.relu)

    def pictures(theirs: bool) -> Any:
        return resnet50(torch.nn if theirs else nn, 1000)

    yield "guide's step, batch 64", run(digits, lambda: images(64, 1, 28, 10), adam)
    yield "BERT-base's step, batch 32", run(words, lambda: sentences(32), adam)
    yield (
        "ResNet-50's step, batch 64",
        run(pictures, lambda: images(64, 3, 224, 1000), momentum),
    )


def lines(rounds: int, compiled: bool, tf32: bool, only: str) -> Iterator[str]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    wait = torch.cuda.synchronize  # the whole device
    for name, made in (
        ("BERT-base, 128 words, batch 1", lambda: inference(1, compiled, tf32)),
        ("BERT-base, 128 words, batch 32", lambda: inference(32, compiled, tf32)),
        *steps(compiled, tf32),
    ):
        if only not in name:
            continue
        found = made()
        times = {}
        for whose, run in found["runs"].items():
            try:
                times[whose] = milliseconds(run, wait, rounds)
            except Exception as error:  # a compiler that gives up
                yield f"    {whose}: {type(error).__name__}: {error}".splitlines()[0]
        report = "  ".join(f"{whose} {time:.3f}" for whose, time in times.items())
        yield f"{name:32} {report}  apart {found['apart']:.1e}"
        if found.get("report"):
            yield f"    {found['report']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    options = parser.parse_args()
    for line in lines(options.rounds, options.compiled, options.tf32, options.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
