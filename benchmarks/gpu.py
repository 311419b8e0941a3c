"""BERT-base's encoder and steps of training on a GPU, beside PyTorch's.

    python benchmarks/gpu.py [--rounds 30] [--compiled] [--tf32] [--only TEXT]
    python benchmarks/gpu.py --bar [--precision bf16] [--only TEXT]

float32 without TF32, the same weights and inputs; the numbers are compared before they
are timed. A run ends when the GPU is done. What is printed: milliseconds (the median)
and the greatest difference, relative to the greatest number. --compiled times
burnish.compile and torch.compile's reduce-overhead mode too; --tf32 lets PyTorch and
burnish.compile round what products multiply.

--bar: the steps of training alone, compiled, in each precision (fp32, tf32, bf16) or
one of them, beside torch.compile's reduce-overhead mode (pictures channels-last,
autocast for bf16); how far the gradients of the first step are from PyTorch's of
float32, PyTorch's own in the same precision beside ours; and PyTorch's time over ours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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


class Row(NamedTuple):
    """A step that is timed: what makes its network, its data and its optimizers."""

    make: Callable[[bool], Any]
    data: Callable[[], Any]
    rules: Callable[[], Any]
    compiled: bool
    tf32: bool

    def __call__(self) -> dict[str, Any]:
        data, rules = self.data(), self.rules()
        return training(self.make, data, rules, self.compiled, self.tf32)


def steps(compiled: bool, tf32: bool) -> Iterator[tuple[str, Row]]:
    """The steps of training that are timed."""
    import torch

    from burnish import nn, ops, optim

    functional = torch.nn.functional

    def run(make: Any, data: Any, rules: Any) -> Row:
        return Row(make, data, rules, compiled, tf32)

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


def gradients_apart(found: dict[str, Any], exact: dict[str, Any]) -> float:
    """The distance of all gradients together, relative to those of `exact`."""
    gap = sum(float(((found[k] - v).double() ** 2).sum()) for k, v in exact.items())
    whole = sum(float((v.double() ** 2).sum()) for v in exact.values())
    return (gap / whole) ** 0.5


def barred(
    make: Callable[[bool], Any], data: Any, rules: Any, precision: str, rounds: int
) -> Iterator[str]:
    """One network's step in one precision: its errors, times and ratio."""
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
    if z[0].ndim == 4:
        last = torch.channels_last
        peer, z[0] = peer.to(memory_format=last), z[0].contiguous(memory_format=last)

    def loss_of(net: Any, half: bool) -> Any:
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            return torch.nn.functional.cross_entropy(net(*z), t2)

    def slopes(half: bool) -> Any:
        peer.zero_grad()
        loss_of(peer, half).backward()
        return {k: p.grad.clone() for k, p in peer.named_parameters()}

    def their_step(net: Any) -> Any:
        other.zero_grad()
        loss = loss_of(net, precision == "bf16")
        loss.backward()
        other.step()
        return loss

    def our_slopes(x: Any, t: Any) -> Any:
        found = nn.cross_entropy(model(*x), t).backward()
        return {k: found.get(p) for k, p in model.named_parameters()}

    def our_step(x: Any, t: Any, rate: float) -> Any:
        loss = nn.cross_entropy(model(*x), t)
        rule.step(rate, model, loss.backward())
        return loss

    dropouts = [
        m
        for _, m in (*model.named_modules(), *peer.named_modules())
        if type(m).__name__ == "Dropout"
    ]
    rates = [m.p for m in dropouts]
    for each in dropouts:
        each.p = 0.0  # for the comparison: each draws its own masks
    allowed(False)
    exact = slopes(False)
    allowed(precision != "fp32")
    own = slopes(precision == "bf16")
    fast = burnish.compile(our_slopes, precision=precision)
    near = {k: torch.from_dlpack(v.data) for k, v in fast(x, t).items()}
    errors = gradients_apart(near, exact), gradients_apart(own, exact)
    del near, own, exact, fast
    for each, p in zip(dropouts, rates, strict=True):
        each.p = p
    wait = torch.cuda.synchronize
    step = burnish.compile(our_step, precision=precision)
    times = {"burnish": milliseconds(lambda: step(x, t, RATE), wait, rounds)}
    quick = torch.compile(peer, mode="reduce-overhead")
    times["torch.compile"] = milliseconds(lambda: their_step(quick), wait, rounds)
    shown = "  ".join(f"{whose} {time:.3f}" for whose, time in times.items())
    yield (
        f"{precision}: {shown}  ratio {times['torch.compile'] / times['burnish']:.2f}  "
        f"gradients apart {errors[0]:.1e}, torch {errors[1]:.1e}"
    )
    yield f"    {step.explain().splitlines()[0]}"


def allowed(tf32: bool) -> None:
    """Let PyTorch round what products of float32 multiply, or not."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def bar(rounds: int, precision: str, only: str) -> Iterator[str]:
    """Every network of the bar, in every precision."""
    for name, made in steps(False, False):
        if only not in name:
            continue
        yield name
        for each in (precision,) if precision else ("fp32", "tf32", "bf16"):
            yield from barred(made.make, made.data(), made.rules(), each, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--bar", action="store_true", help="the steps of the bar")
    parser.add_argument("--precision", default="", help="the bar in this one alone")
    options = parser.parse_args()
    if options.bar:
        for line in bar(options.rounds, options.precision, options.only):
            print(line, flush=True)
        return
    for line in lines(options.rounds, options.compiled, options.tf32, options.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
