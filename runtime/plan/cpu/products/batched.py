"""Products of two values: matrices, along axes of a batch that broadcast."""

from __future__ import annotations

import math

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, PLAIN, blocks, strides
from burnish.plan.cpu.products.gemv import times_vector
from burnish.plan.cpu.table import LOWERED, check, lower, need
from burnish.plan.graph import Constant, Node, Value

_BATCH = 3  # axes that a record has for the batch
_ROWS = 48  # of a unit, as in matmul.c


@lower("matmul")
def matmul(b: Builder, node: Node) -> None:
    """a (..., n, k) @ b (..., k, m); a vector is a row of a, or a column of b."""
    check(node, *node.args)
    ranks = [len(arg.shape) for arg in node.args]
    need(min(ranks), "an input has no axes")
    k = node.args[0].shape[-1]
    need(k, "it sums nothing")
    if ranks[1] == 1:
        times_vector(b, node, node.args[0], node.args[1], "rows")
        return
    if ranks == [1, 2]:
        times_vector(b, node, node.args[1], node.args[0], "columns")
        return
    need(max(ranks) <= _BATCH + 2, f"it has {max(ranks)} axes")
    shape = node.result.shape
    if ranks[0] == 1:
        shape = (*shape[:-1], 1, shape[-1])
    shape = (1,) * (_BATCH + 2 - len(shape)) + shape
    *batch, rows, n = shape
    fields = {}
    for name, arg in zip("ab", node.args, strict=True):
        spot, steps = _strided(b, arg, in_lines=name == "a")
        lead = (0,) * (_BATCH + 2 - len(steps))
        sizes, steps = (1,) * len(lead) + arg.shape, (*lead, *steps)
        fields[name] = spot
        for i in range(_BATCH):
            fields[f"{name}{i}"] = steps[i] if sizes[i] != 1 else 0
        fields[f"{name}_row"] = steps[-2]
        fields[f"{name}_column"] = 1 if sizes[-1] == 1 else steps[-1]
    flops = 2 * math.prod(shape) * k
    shares = b.shares(flops / 8, math.prod(batch) * -(-rows // _ROWS))
    room = k * LANES * blocks(n)
    b.add(
        "matmul", shares, flops=flops, **fields, out=b.result(node.result),
        space=b.new(4 * room * shares), rows=rows, k=k, n=n, room=room,
        **{f"size{i}": size for i, size in enumerate(batch)},
    )  # fmt: skip


@lower("low_rank_add")
def low_rank_add(b: Builder, node: Node) -> None:
    """x + scale * (down @ up), the axes of x behind the first as one."""
    x, down, up = node.args
    check(node, x, down, up)
    product = b.unnamed_value((down.shape[0], up.shape[1]))
    matmul(b, Node("matmul", [down, up], {}, [product], []))
    change = b.unnamed_value(x.shape)
    b.alias(change, PLAIN, b.spot(product))
    code = [("mul", 1, 2, 0, 0.0, 0.0), ("add", 0, 3, 0, 0.0, 0.0)]
    args = [x, change, float(node.options["scale"])]
    made = Node("program", args, {"code": code}, node.results, [])
    LOWERED["program"](b, made)


def _strided(
    b: Builder, arg: Value | Constant, in_lines: bool
) -> tuple[object, tuple[int, ...]]:
    """The place of an operand, and its strides.

    in_lines: its rows or its columns have to be contiguous.
    """
    if isinstance(arg, Constant):
        return b.constant(arg), strides(arg.shape)
    spot, steps = b.strided(arg)
    is_in_lines = 1 in (*steps[-2:], *arg.shape[-2:])
    if in_lines and not is_in_lines:
        return b.spot(arg), strides(arg.shape)
    return spot, steps
