"""Rounded values: their sources, and how they are rounded."""

from __future__ import annotations

from typing import Any, NamedTuple

from burnish.plan.cpu.buffers import Spot
from burnish.plan.cpu.builder import Builder
from burnish.plan.graph import Constant, Value


class Rounded(NamedTuple):
    """The origin of a rounded value: x, and how to read its codes.

    one: a scale for all of x; else one for each row, along the last axis.
    """

    x: Value
    scale: Value | Constant
    zero: Value | Constant | None
    low: int
    high: int
    one: bool

    @property
    def values(self) -> list[Value]:
        parts = self.x, self.scale, self.zero
        return [part for part in parts if isinstance(part, Value)]


def is_fixed(r: Rounded) -> bool:
    """Whether it has one scale, which is known before the value is."""
    return isinstance(r.scale, Constant) and not isinstance(r.zero, Value) and r.one


def by_product(
    b: Builder, r: Rounded, source: Spot, name: str, out: Spot,
    size: tuple[int, int] | None = None, **more: Spot,
) -> bool:  # fmt: skip
    """Let the product that gives a value write its codes, or their values, too.

    name: "codes" or "values". size: rows and columns that codes need. False where no
    product gives the value, where scales are known only after it, or where it rounds
    its results in another way already.
    """
    if not is_fixed(r):
        return False
    rounding = {f"y_{part}": held for part, held in scheme(b, r).items()}
    for number, step in enumerate(b.steps):
        fields = step.fields
        if step.kind != "quantized" or fields["out"] != source or fields[name]:
            continue
        if size is not None and (fields["rows"], fields["outs"]) != size:
            continue
        if fields["y_scale"] and any(fields[key] != rounding[key] for key in rounding):
            continue
        rounding |= {name: out, **more}
        for held in rounding.values():
            if isinstance(held, Spot):
                held.buffer.used(number)
        fields |= rounding
        return True
    return False


def scheme(b: Builder, r: Rounded) -> dict[str, Any]:
    """The fields of a record that tell how it rounds."""
    zero = None if r.zero is None else b.spot(r.zero)
    return {"scale": b.spot(r.scale), "zero": zero, "low": r.low, "high": r.high}
