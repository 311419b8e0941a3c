"""Training steps beside PyTorch's: convolutional networks, a transformer, optimizers.

    python benchmarks/training.py [--threads 1] [--rounds 7] [--only TEXT] [--plain]

A step is the forward pass, the loss, the gradients and the update of Adam, PyTorch's
fused; all in float32. Ours is a plan of `burnish.compile`, or with --plain the function
as it is, which uses kernels where they were built before, by `burnish kernels build`.
That of an optimizer alone updates the transformer's weights by the same gradients over
and over; PyTorch's is fused where it has a fused form. What is printed:
milliseconds of each, and PyTorch's time divided by Burnish's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from beside import Timing, limit_threads, measure, report
from networks import mobilenet_v2, resnet18

RATE = 1e-3


def cnn(nn: Any, relu: Any) -> Any:
    """The guide's classifier of digits: (N, 1, 28, 28) -> (N, 10)"""

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3)
            self.conv2 = nn.Conv2d(8, 16, 3)
            self.pool = nn.AdaptiveAvgPool2d(8)
            self.dropout = nn.Dropout(0.5)
            self.linear1 = nn.Linear(16 * 8 * 8, 512)
            self.linear2 = nn.Linear(512, 10)

        def forward(self, x: Any) -> Any:
            x = self.dropout(self.conv1(x))
            x = relu(self.dropout(self.conv2(x)))
            x = self.pool(x).reshape(x.shape[0], 16 * 8 * 8)
            return self.linear2(relu(self.dropout(self.linear1(x))))

    return Model()


def transformer(nn: Any, gelu: Any, attend: Any) -> Any:
    """Words (N, T) -> (N, 10): two layers, the first position decides"""
    width, heads = 256, 8

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.query = nn.Linear(width, width)
            self.key = nn.Linear(width, width)
            self.value = nn.Linear(width, width)
            self.out = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.linear1 = nn.Linear(width, 4 * width)
            self.linear2 = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            z = self.norm1(x)
            q, k, v = (
                layer(z).reshape(n, t, heads, width // heads).swapaxes(1, 2)
                for layer in (self.query, self.key, self.value)
            )
            y = attend(q, k, v).swapaxes(1, 2).reshape(n, t, width)
            x = x + self.out(y)
            return x + self.linear2(gelu(self.linear1(self.norm2(x))))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(5000, width)
            self.block1 = Block()
            self.block2 = Block()
            self.head = nn.Linear(width, 10)

        def forward(self, words: Any) -> Any:
            x = self.block2(self.block1(self.embedding(words)))
            return self.head(x[:, 0])

    return Model()


def our_step(model: Any, x: Any, labels: Any, is_plain: bool) -> Callable[[], Any]:
    import burnish
    from burnish import Tensor, nn, optim

    model = model.to("cpu:autodiff")
    adam = optim.Adam()
    data, wanted = Tensor(x), Tensor(labels)

    def step(data: Any, wanted: Any) -> Any:
        loss = nn.cross_entropy(model(data), wanted)
        adam.step(RATE, model, loss.backward())
        return loss

    fast = step if is_plain else burnish.compile(step)
    return lambda: fast(data, wanted).item()


def their_step(model: Any, x: Any, labels: Any) -> Callable[[], Any]:
    import torch

    adam = torch.optim.Adam(model.parameters(), RATE, fused=True)
    data, wanted = torch.from_numpy(x), torch.from_numpy(labels)

    def step() -> Any:
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), wanted)
        loss.backward()
        adam.step()
        return loss.item()

    return step


def networks() -> Iterator[tuple[str, Callable[[Any, Any], Any], Any]]:
    """Names, what makes a network of a library's nn and functions, and inputs."""
    rng = np.random.default_rng(0)

    def images(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    def words_model(of: Any, functions: Any) -> Any:
        attend = functions.scaled_dot_product_attention
        return transformer(of, functions.gelu, attend)

    yield (
        "guide CNN, 64 x 1 x 28 x 28",
        lambda of, functions: cnn(of, functions.relu),
        images(64, 1, 28, 28),
    )
    for name, make, size in (
        ("ResNet-18, 16 x 3 x 32 x 32", resnet18, 32),
        ("ResNet-18, 16 x 3 x 112 x 112", resnet18, 112),
        ("MobileNetV2, 16 x 3 x 96 x 96", mobilenet_v2, 96),
    ):
        yield name, lambda of, _, make=make: make(of), images(16, 3, size, size)
    yield "transformer, 8 x 128 words", words_model, rng.integers(0, 5000, (8, 128))


def timings(rounds: int, only: str, is_plain: bool) -> Iterator[Timing]:
    import torch

    from burnish import nn, ops

    labels = np.random.default_rng(0).integers(0, 10, 64)
    for name, make, x in networks():
        if only.lower() not in name.lower():
            continue
        ours, theirs = make(nn, ops), make(torch.nn, torch.nn.functional)
        state = {k: v.numpy().copy() for k, v in theirs.state_dict().items()}
        ours.load_state_dict(state)
        one = our_step(ours, x, labels[: len(x)], is_plain)
        other = their_step(theirs, x, labels[: len(x)])
        yield measure(name, one, other, rounds)
    yield from optimizers(rounds, only)


OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    *((name, {}) for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax")),
    *((name, {}) for name in ("Adagrad", "Adadelta", "RMSprop", "Rprop")),
)


_FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def optimizers(rounds: int, only: str) -> Iterator[Timing]:
    """A step of each on a transformer's weights."""
    import torch

    from burnish import Tensor, nn, ops, optim

    words = np.random.default_rng(0).integers(0, 5000, (2, 16))
    for name, options in OPTIMIZERS:
        given = ", ".join(f"{k}={v}" for k, v in options.items())
        if only.lower() not in f"{name}({given})".lower():
            continue
        attend = ops.scaled_dot_product_attention
        ours = transformer(nn, ops.gelu, attend).to("cpu:autodiff")
        grads = ours(Tensor(words)).sum().backward()
        rule = getattr(optim, name)(**options)
        peers = [
            torch.nn.Parameter(torch.from_numpy(np.array(p.data)))
            for p in ours.parameters()
        ]
        for peer in peers:
            peer.grad = torch.ones_like(peer)
        fused = {"fused": True} if name in _FUSED else {}
        peer_rule = getattr(torch.optim, name)(peers, RATE, **options, **fused)

        def one(rule: Any = rule, model: Any = ours, grads: Any = grads) -> None:
            rule.step(RATE, model, grads)

        yield measure(f"{name}({given})", one, peer_rule.step, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--plain", action="store_true", help="without a plan")
    options = parser.parse_args()
    limit_threads(options.threads)
    report(timings(options.rounds, options.only, options.plain))


if __name__ == "__main__":
    main()
