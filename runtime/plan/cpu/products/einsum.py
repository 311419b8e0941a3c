"""Einstein sums of two operands as matrix products over a batch."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from burnish.ops.linalg.einsum import explicit
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import PLAIN, strides
from burnish.plan.cpu.moves.joined import see
from burnish.plan.cpu.table import LOWERED, check, lower, need
from burnish.plan.graph import Constant, Node, Value


@lower("einsum_of")
def einsum(b: Builder, node: Node) -> None:
    """Labels of both operands and the result are the batch; of both alone, summed."""
    y = node.result
    check(node, *node.args)
    need(len(node.args) == 2, f"it is of {len(node.args)} operands")
    ranks = [len(arg.shape) for arg in node.args]
    (first, second), made = explicit(node.options["equation"], ranks)
    need(
        len({*first}) == len(first) and len({*second}) == len(second),
        "a label is twice in one operand",
    )
    shapes = node.args[0].shape + node.args[1].shape
    sizes = dict(zip(first + second, shapes, strict=True))
    same = zip(first, node.args[0].shape, strict=True)
    need(all(sizes[label] == n for label, n in same), "its operands broadcast")
    need({*first} ^ {*second} <= {*made}, "a label of one operand is summed")
    batch = [label for label in made if label in first and label in second]
    rows = [label for label in made if label not in second]
    columns = [label for label in made if label not in first]
    summed = [label for label in first if label in second and label not in made]
    parts = (
        _matrices(b, node.args[0], first, [batch, rows, summed]),
        _matrices(b, node.args[1], second, [batch, summed, columns]),
    )
    product = b.unnamed_value(
        tuple(math.prod(sizes[n] for n in group) for group in (batch, rows, columns))
    )
    LOWERED["matmul"](b, Node("matmul", list(parts), {}, [product], []))
    order = [*batch, *rows, *columns]
    dense = strides(tuple(sizes[label] for label in order))
    steps = tuple(dense[order.index(label)] for label in made)
    see(b, y, b.spot(product), steps)


def _matrices(
    b: Builder, x: Any, labels: str, groups: list[list[str]]
) -> Value | Constant:
    """x as (a batch, rows, columns), each of some of its axes; if possible a view."""
    order = [labels.index(label) for group in groups for label in group]
    sizes = [[x.shape[labels.index(label)] for label in group] for group in groups]
    shape = tuple(map(math.prod, sizes))
    if isinstance(x, Constant):
        return x.then(lambda a: np.ascontiguousarray(a.transpose(order).reshape(shape)))
    made = b.unnamed_value(shape)
    spot, distances = b.strided(x)
    steps = iter([distances[axis] for axis in order])
    merged = [_merged(group, [next(steps) for _ in group]) for group in sizes]
    if all(step is not None for step in merged):
        see(b, made, spot, tuple(step or 0 for step in merged))
        return made
    moved = tuple(x.shape[axis] for axis in order)
    far = [distances[axis] for axis in order]
    b.copy(moved, spot, far, b.result(made, PLAIN), strides(moved))
    return made


def _merged(sizes: list[int], steps: list[int]) -> int | None:
    """The distance along some axes as one; None where they are not one."""
    axes = [(n, step) for n, step in zip(sizes, steps, strict=True) if n != 1]
    for (_, outer), (n, step) in itertools.pairwise(axes):
        if outer != n * step:
            return None
    return axes[-1][1] if axes else 1
