"""Attention, and the key/value cache that it reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.kernels.forms import attention_room
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import PLAIN, strides
from burnish.plan.cpu.table import check, lower, need
from burnish.plan.graph import Node, Value


@lower("attention")
def attention(b: Builder, node: Node) -> None:
    q, k, v, mask = node.args
    check(node, q, k, v)
    rank = len(q.shape)
    need(
        all(isinstance(p, Value) for p in (q, k, v)), "a parameter is among its inputs"
    )
    is_grouped = rank == 5 and k.shape[2] == v.shape[2] == 1
    need(2 <= rank <= 4 or is_grouped, "its rank")
    need(len(k.shape) == len(v.shape) == rank, "its rank")
    shared = q.shape[2] if is_grouped else 1  # heads of q for one of k and v
    if rank == 4 and k.shape[1] == v.shape[1] == 1:
        shared = q.shape[1]
    lead = 2 if is_grouped else 1 if shared > 1 else rank - 2
    need(k.shape[:lead] == v.shape[:lead] == q.shape[:lead], "heads that share keys")
    need(not (is_grouped and node.options["turned"]), "its result is turned")
    parts: dict[str, Any] = {}
    for name, part in zip("qkv", (q, k, v), strict=True):
        spot, own = b.strided(part)
        apart = is_grouped and name == "q" and own[1] != shared * own[2]
        if own[-1] != 1 or apart:
            spot, own = b.spot(part), strides(part.shape)
        if is_grouped:
            own = (own[0], own[2 if name == "q" else 1], *own[3:])
        batch, head, row, _ = (0,) * (4 - len(own)) + tuple(own)
        parts |= {name: spot, f"{name}_batch": batch, f"{name}_head": head}
        parts[f"{name}_row"] = row
    if is_grouped:
        batches, heads = q.shape[0], q.shape[1] * shared
        queries, size = q.shape[3:]
    else:
        batches, heads, queries, size = (1,) * (4 - rank) + q.shape
    keys, values = v.shape[-2:]
    turned = node.options["turned"]
    shape = (
        (batches, queries, heads, values)
        if turned
        else (batches, heads, queries, values)
    )
    steps = strides(shape)
    out_batch, out_head, out_row = (
        (steps[0], steps[2], steps[1]) if turned else steps[:3]
    )
    masked = mask_steps(b, mask, is_grouped)
    room = attention_room(size, keys, values)
    flops = 2 * batches * heads * queries * keys * (size + values)
    shares = b.shares(flops / 8, batches * heads)
    b.add(
        "attention", shares, flops=flops, **parts, **masked,
        out=b.result(node.result), kept=None, is_causal=False, keep=None,
        keep_bound=-1, keep_factor=1.0,
        space=b.new(4 * room * shares), batches=batches,
        heads=heads, shared=shared, queries=queries, keys=keys, size=size,
        values=values, out_batch=out_batch, out_head=out_head, out_row=out_row,
        room=room, zero_if_empty=node.options["zero_if_empty"],
        scale=node.options["scale"], blocked=node.options["blocked"],
    )  # fmt: skip


def mask_steps(b: Builder, mask: Any, is_grouped: bool) -> dict[str, Any]:
    """A mask's place, and its distances along the axes of the scores."""
    names = [f"mask_{axis}" for axis in ("batch", "head", "query", "key")]
    if mask is None:
        return {**dict.fromkeys(names, 0), "mask": None, "mask_is_bool": False}
    need(mask.dtype in (np.float32, np.bool_), f"its mask is {mask.dtype}")
    sizes, steps = tuple(mask.shape), strides(mask.shape)
    if is_grouped and len(sizes) > 2:  # (..., heads of k, those of q for one, T, S)
        need(sizes[-3] == 1 and sizes[-4:-3] in ((), (1,)), "its mask differs by head")
        sizes, steps = (*sizes[:-4], *sizes[-3:]), (*steps[:-4], *steps[-3:])
    need(len(sizes) <= 4, "its mask has more than 4 axes")
    lead = 4 - len(sizes)
    steps, sizes = (0,) * lead + steps, (1,) * lead + sizes
    steps = tuple(0 if n == 1 else s for n, s in zip(sizes, steps, strict=True))
    found = dict(zip(names, steps, strict=True))
    return {**found, "mask": b.spot(mask), "mask_is_bool": mask.dtype == np.bool_}


@lower("put")
def put(b: Builder, node: Node) -> None:
    """New rows in an argument's own array, which the result is."""
    room, new, places = node.args
    need(all(isinstance(each, Value) for each in node.args), "a parameter is given")
    check(node, room, new)
    need(places.dtype == np.int64, "its places are not int64")
    held = b.spot(room)
    need(held.buffer.outside and held.offset == 0, "its room is no argument")
    b.in_place.add(room.place)
    spot, own = b.strided(new)
    if own[-1] != 1:
        spot, own = b.spot(new), strides(new.shape)
    batch, heads, rows, width = new.shape
    b.add(
        "put", 1, x=spot, places=b.spot(places), out=held, fault=b.fault(),
        size0=batch, size1=heads, rows=rows, width=width, room=room.shape[2],
        x0=own[0], x1=own[1], x2=own[2],
    )  # fmt: skip
    b.alias(node.result, PLAIN, Spot(held.buffer))
