"""Recognize `as_strided` in the gather from a flattened tensor that exporters write.

The places are sums, one term for each axis: the first one counts the examples, what is
known of the others is a table.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g


def read_in_order(node: ir.Node) -> ir.Value | None:
    """The input of a Gather that takes all elements in order; None for other nodes."""
    if node.op_type != "Gather" or g.attribute(node, "axis", 0):
        return None
    flat, places = node.inputs
    reshape = g.maker_of(flat, "Reshape")
    if reshape is None or places is None:
        return None
    source, shape = reshape.inputs
    sizes = None if source is None else declared(source)
    if g.integers(shape) != [-1] or sizes is None or sizes != declared(node.outputs[0]):
        return None
    rest = [None if size is None else size.value for size in sizes[1:]]
    known = [size for size in rest if size is not None]
    counted = None if len(known) < len(rest) else _counted(places, len(sizes))
    if counted is None:
        return None
    step, table = counted
    wanted = np.arange(step).reshape(1, *known) if step == np.prod(known) else None
    return source if wanted is not None and np.array_equal(table, wanted) else None


def _counted(places: ir.Value, rank: int) -> tuple[int, np.ndarray] | None:
    """How far it is from one example to the next, and the places in the first."""
    table, steps = np.zeros((1,) * rank, np.int64), []
    terms = [places]
    while terms:
        term = terms.pop()
        made, known = term.producer(), g.constant(term)
        if known is not None:
            table = table + known.numpy()
        elif made is not None and made.op_type == "Add" and None not in made.inputs:
            terms += [part for part in made.inputs if part is not None]
        else:
            steps.append(_step(made, rank))
    if len(steps) != 1 or steps[0] is None or table.ndim != rank:
        return None
    return steps[0], table


def _step(made: ir.Node | None, rank: int) -> int | None:
    """The number by which a count of examples (N, 1, ..., 1) is multiplied."""
    if made is None or made.op_type != "Unsqueeze" or len(made.inputs) < 2:
        return None
    times = g.maker_of(made.inputs[0], "Mul")
    if times is None or g.integers(made.inputs[1]) != list(range(1, rank)):
        return None
    for count, by in (times.inputs, times.inputs[::-1]):
        step, counting = g.scalar(by), g.maker_of(count, "Range")
        if step is None or counting is None:
            continue
        start, _, delta = counting.inputs
        if g.scalar(start) == 0 and g.scalar(delta) == 1:
            return int(step)
    return None
