"""Attention in steps of training, and its gradients, without the matrix of scores."""

from __future__ import annotations

from typing import Any

from burnish.kernels.attention import sizes_of
from burnish.kernels.forms import attention_gradient_room, attention_room
from burnish.plan.cpu.attention import mask_steps
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import strides
from burnish.plan.cpu.moves.joined import see
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Constant, Node, Value


@lower("attended_heads")
def attended_heads(b: Builder, node: Node) -> None:
    q, k, v, mask, *keep = node.args
    check(node, q, k, v)
    fields, sizes = _inputs(b, node, q, k, v, mask, *keep)
    y, kept = node.results
    pairs, units, shape = sizes
    room = attention_room(*shape)
    flops = 2 * pairs * (shape[0] + shape[2])
    shares = b.shares(flops / 8, units)
    b.add(
        "attention", shares, flops=flops, **fields, **_made(b, "out", y),
        kept=b.result(kept), space=b.new(4 * room * shares), room=room,
        zero_if_empty=mask is not None, blocked=float("-inf"),
    )  # fmt: skip


@lower("attended_heads gradient")
def attention_gradient(b: Builder, node: Node) -> None:
    g, of_kept, y, kept, q, k, v, mask, *keep = node.args
    need(of_kept is None, "a gradient of its sums")
    check(node, g, y, kept, q, k, v)
    fields, sizes = _inputs(b, node, q, k, v, mask, *keep)
    pairs, units, shape = sizes
    fields |= _read(b, "g", g) | _read(b, "y", y)
    results = iter(node.results)
    needed = node.lines[-1].function.needed[:3]
    for name, part, is_needed in zip(
        ("dq", "dk", "dv"), (q, k, v), needed, strict=True
    ):
        made = next(results) if is_needed else b.unnamed_value(part.shape)
        fields |= _made(b, name, made)
    room = attention_gradient_room(*shape)
    flops = 2 * pairs * (3 * shape[0] + 2 * shape[2])
    shares = b.shares(flops / 8, units // fields["shared"])
    b.add(
        "attention_gradient", shares, flops=flops, **fields, kept=b.spot(kept),
        space=b.new(4 * room * shares), room=room,
    )  # fmt: skip


def _inputs(
    b: Builder, node: Node, q: Any, k: Any, v: Any, mask: Any, keep: Any = None
) -> tuple[dict[str, Any], tuple[int, int, tuple[int, int, int]]]:
    """Fields of both records; pairs of queries and keys, heads, sizes for the room."""
    need(
        all(isinstance(p, Value) for p in (q, k, v)), "a parameter is among its inputs"
    )
    sizes = sizes_of(tuple(q.shape), tuple(v.shape))
    fields: dict[str, Any] = mask_steps(b, mask, False)
    for name, part in zip("qkv", (q, k, v), strict=True):
        fields |= _read(b, name, part)
    fields |= sizes | _dropping(b, keep, node.options.get("keep_factor", 1.0))
    fields |= {name: node.options[name] for name in ("is_causal", "scale")}
    units = sizes["batches"] * sizes["heads"]
    pairs = units * sizes["queries"] * sizes["keys"]
    shape = sizes["size"], sizes["keys"], sizes["values"]
    return fields, (pairs, units, shape)


def _dropping(b: Builder, keep: Any, factor: float) -> dict[str, Any]:
    """What both records say of dropout's mask: its key, or bytes where it has none."""
    fields = {"keep": None, "keep_bound": -1, "keep_factor": factor}
    if keep is None:
        return fields
    if isinstance(keep, Value) and keep.place in b.masks:
        mask = b.masks[keep.place]
        return fields | {"keep": mask.key, "keep_bound": mask.bound}
    return fields | {"keep": b.spot(keep)}


def _read(b: Builder, name: str, value: Value | Constant) -> dict[str, Any]:
    """A value's place and distances, in place where its rows are contiguous."""
    spot, steps = b.strided(value)
    if steps[-1] != 1:
        spot, steps = b.spot(value), strides(value.shape)
    return {name: spot, **_distances(name, steps)}


def _made(b: Builder, name: str, value: Value) -> dict[str, Any]:
    """A result's place and distances: heads behind rows, as products next to it go."""
    if len(value.shape) < 4:
        return {name: b.result(value), **_distances(name, strides(value.shape))}
    batches, heads, rows, width = value.shape
    by_batch, by_row, by_head, one = strides((batches, rows, heads, width))
    spot, steps = b.new(4 * value.size), (by_batch, by_head, by_row, one)
    see(b, value, spot, steps)
    return {name: spot, **_distances(name, steps)}


def _distances(name: str, steps: tuple[int, ...]) -> dict[str, int]:
    batch, head, row, _ = (0,) * (4 - len(steps)) + tuple(steps)
    return {f"{name}_batch": batch, f"{name}_head": head, f"{name}_row": row}
