"""Multiply-accumulates of operators, from the shapes of their inputs and outputs.

A rule declares one of these functions as its `macs`. Each takes the inputs' shapes, the
first output's shape and the attributes. An input that is not given has an empty shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Shape = tuple[int, ...]
Macs = Callable[[Sequence[Shape], Shape, Mapping[str, Any]], int]


def correlated(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # weight (out, in/groups, *kernel): each output element sums in/groups * kernel
    return math.prod(y) * math.prod(given[1][1:])


def quantized_conv(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # x, its scale and zero point, and then the weight
    return math.prod(y) * math.prod(given[3][1:])


def transposed(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # weight (in, out/groups, *kernel): each input element reaches out/groups * kernel
    return math.prod(given[0]) * math.prod(given[1][1:])


def multiplied(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    return math.prod(y) * given[0][-1]


def gemm(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    return math.prod(y) * given[0][0 if options.get("transA", 0) else 1]


def recurrent(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # x (T, N, width) or (N, T, width), weight (directions, gates * hidden, width)
    (steps, batch, width), (directions, rows, _), (*_, hidden) = given[:3]
    return steps * batch * directions * rows * (width + hidden)


def recurrent_steps(
    given: Sequence[Shape], y: Shape, options: Mapping[str, Any]
) -> int:
    # x (T, N, rows) is the projected input, weight (rows, hidden)
    return math.prod(given[0]) * given[1][-1]


def attention(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    q, k, v = given[:3]
    if len(q) == 4:
        batch, heads, queries, width = q
        keys, value_width = k[2], v[3]
    else:
        batch, queries, width = q
        heads = options.get("q_num_heads", 1)
        keys = k[1]
        width, value_width = width // heads, v[2] // options.get("kv_num_heads", heads)
    if len(given) > 4 and given[4]:
        keys += given[4][2]
    return batch * heads * queries * keys * (width + value_width)


def einsum(given: Sequence[Shape], y: Shape, options: Mapping[str, Any]) -> int:
    # one nested loop for each label of the equation
    terms = str(options["equation"]).replace(" ", "").partition("->")[0].split(",")
    if len(terms) < 2:
        return 0
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, given, strict=True):
        before, dots, after = term.partition("...")
        free = len(shape) - len(before) - len(after) if dots else 0
        labels = [*before, *(f".{i - free}" for i in range(free)), *after]
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    return math.prod(sizes.values())
