"""Optimizers alone beside PyTorch's: updates of a transformer's weights.

    python benchmarks/optimizers.py [--threads 1] [--rounds 7] [--only TEXT]

The same gradients over and over; PyTorch's are fused where they have a fused form.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from beside import Timing, limit_threads, measure, report
from sequences import transformer

RATE = 1e-3

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
        ours = transformer(nn, ops).to("cpu:autodiff")
        grads = ours(Tensor(words), Tensor(np.arange(16))).sum().backward()
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
    options = parser.parse_args()
    limit_threads(options.threads)
    report(optimizers(options.rounds, options.only))


if __name__ == "__main__":
    main()
