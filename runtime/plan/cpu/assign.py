"""Assignments to buffers: of what records compute, when a run is over.

So a step of training is not cut into pieces by its running statistics.
"""

from __future__ import annotations

import numpy as np

from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.elementwise import program
from burnish.plan.cpu.table import lower, need
from burnish.plan.graph import Node, Value


@lower("assign")
def assign(b: Builder, node: Node) -> None:
    stored, value = node.args
    if node in b.late:
        return
    need(isinstance(stored, Value) and isinstance(value, Value), "it is constant")
    need(b.knows(value.place), f"its value is {value.dtype}")
    need(not b.is_read_after(node, stored.place), "its values are read later")
    dtypes = {stored.dtype, value.dtype, np.dtype(node.options["dtype"] or np.float32)}
    need(dtypes == {np.dtype(np.float32)}, "it is not in single precision")
    need(stored.shape == value.shape, "its values are of another shape")
    need(b.spot(value).root.buffer.is_arena, "its values are an array of the call")
    b.assigned.append((stored, value))


@lower("counted")
def counted(b: Builder, node: Node) -> None:
    """Counted and assigned behind the run, where nobody else asks for the count."""
    count, result = node.args[0], node.result
    readers = b.readers.get(result.place, [])
    need(result.place not in b.results, "its result is the plan's")
    need([each.name for each in readers] == ["assign"], "its result is read")
    (reader,) = readers
    need(reader.args[0] is count, "it counts for another buffer")
    others = [e for e in b.readers.get(count.place, ()) if id(e) not in b.done]
    need(count.place not in b.results, "its buffer is the plan's")
    need(all(each in (node, reader) for each in others), "its buffer is read later")
    b.late += [node, reader]


@lower("moved_towards")
def moved_towards(b: Builder, node: Node) -> None:
    """old * (1 - share) + new * (share * scale)"""
    old, new, share = node.args
    need(isinstance(share, float), "its share is computed")
    by = node.options["scale"]
    code = [("mul", 0, 2, 0, 0.0, 0.0), ("mul", 1, 3, 0, 0.0, 0.0)]
    code.append(("add", 4, 5, 0, 0.0, 0.0))
    args = [old, new, 1 - share, share * by]
    program(b, Node("program", args, {"code": code}, node.results, node.lines))
