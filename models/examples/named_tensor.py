"""Axes with names: attention whose every line says what it works on.

    python -m burnish.models.examples.named_tensor [--batch 2] [--time 5]

A product says over which axis it sums, a softmax along which it goes; axes that do not
fit are an error that names them. The same with plain tensors gives the same numbers,
and the same gradients.
"""

from __future__ import annotations

import argparse

from burnish import Tensor, ops, seed
from burnish.errors import InputError
from burnish.named import NamedTensor

HEADS, UNITS = 4, 8


def attention(queries: NamedTensor, keys: NamedTensor) -> NamedTensor:
    """(batch, time, head, unit), (batch, place, head, unit) -> queries' axes

    The keys are the values too.
    """
    scores = queries.dot(keys, "unit") * UNITS**-0.5
    shares = scores.map(ops.softmax, "place")
    return shares.dot(keys, "place")


def by_place(queries: Tensor, keys: Tensor) -> Tensor:
    """The same, with axes by number."""
    keys = keys.permute(0, 2, 1, 3)
    scores = queries.permute(0, 2, 1, 3) @ keys.permute(0, 1, 3, 2) * UNITS**-0.5
    return (ops.softmax(scores, axis=-1) @ keys).permute(0, 2, 1, 3)


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Show it, and give how far names and numbers are apart: values, gradients."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--time", type=int, default=5)
    options = parser.parse_args(argv)

    seed(0)
    shape = (options.batch, options.time, HEADS, UNITS)
    x = NamedTensor(Tensor.randn(*shape), "batch", "time", "head", "unit")
    x = x.require_grad()
    print("x:", x.sizes)
    print("turned round:", x.swap("time", "head").sizes)
    print("mean of heads:", x.mean("head").sizes)
    offset = NamedTensor(Tensor.randn(UNITS, HEADS), "unit", "head")
    print("plus an offset with axes in another order:", (x + offset).sizes)

    y = attention(x + offset, x.rename(time="place"))
    print("attention:", y.sizes)
    for mistake in (
        lambda: x + NamedTensor(Tensor.randn(3), "channel"),
        lambda: x.sum("channel"),
        lambda: x @ offset,
    ):
        try:
            mistake()
        except InputError as error:
            print("refused:", error)

    plain = x.tensor.detach().require_grad()
    z = by_place(plain + offset.tensor.permute(1, 0), plain)
    found = x.grad((y * y).sum().backward())
    wanted = plain.grad((z * z).sum().backward())
    assert found is not None
    assert wanted is not None
    apart = {
        "values": (y.tensor - z).abs().max().item(),
        "gradients": (found.tensor - wanted).abs().max().item(),
    }
    print("apart from plain tensors:", apart)
    return apart


if __name__ == "__main__":
    main()
