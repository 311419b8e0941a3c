"""Lowering for CPUs: kernels for nodes, and memory layout of arrays."""

from burnish.plan.cpu import (
    along,
    along_gradients,
    attention,
    batched,
    conv,
    elementwise,
    embedding,
    gradients,
    joined,
    loss,
    quantized,
    recurrent,
    recurrent_gradients,
    rounding,
    row_gradients,
    rows,
    trees,
    window,
)
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.memory import Memory, placed
from burnish.plan.cpu.rounding import moved
from burnish.plan.cpu.sums import sum_of_codes
from burnish.plan.cpu.table import LOWERED, Declined, lower

__all__ = [
    "LOWERED",
    "Builder",
    "Declined",
    "Memory",
    "along",
    "along_gradients",
    "attention",
    "batched",
    "conv",
    "elementwise",
    "embedding",
    "gradients",
    "joined",
    "loss",
    "lower",
    "moved",
    "placed",
    "quantized",
    "recurrent",
    "recurrent_gradients",
    "rounding",
    "row_gradients",
    "rows",
    "sum_of_codes",
    "trees",
    "window",
]
