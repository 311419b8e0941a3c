"""Values as bfloat16, as products with that precision read them."""

from __future__ import annotations

from burnish.kernels.forms import even
from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES, Layout, pixels
from burnish.plan.graph import Value


def half_spot(b: Builder, x: Value, layout: Layout, axis: int) -> Spot:
    """The place of a value whose channels are along `axis`, rounded to bfloat16.

    layout: of float32, in blocks or with channels last.
    """
    blocked = layout.kind == "blocked"
    made = Layout("blocked" if blocked else "rows", axis, half=True)
    if not b.has(x, made):
        source = b.spot(x, layout)
        count, places = x.shape[axis], pixels(x.shape, axis)
        label, b.label = b.label, "to bfloat16"
        if blocked:
            whole = count // LANES * places
            out = b.new(2 * LANES * (whole + (places if count % LANES else 0)))
            beyond = source.beyond(LANES * whole), out.moved(2 * LANES * whole)
            _add(b, source, out, whole, LANES, LANES, LANES)
            _add(b, *beyond, places, count % LANES, LANES, LANES)
        else:
            out = b.new(2 * even(count) * places)
            _add(b, source, out, places, count, count, even(count))
        b.label = label
        b.alias(x, made, out)
    return b.forms[x.place][made]


def _add(
    b: Builder, source: Spot, out: Spot, rows: int, width: int, x_row: int, out_row: int
) -> None:
    if rows and width:
        b.add(
            "to_half", b.shares(rows * width), x=source, out=out, rows=rows,
            width=width, x_row=x_row, out_row=out_row,
        )  # fmt: skip
