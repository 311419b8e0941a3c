"""Lowering for CPUs: kernels for nodes, and memory layout of arrays."""

from burnish.plan.cpu import (
    assign,
    attention,
    draws,
    elementwise,
    float16,
    recurrent,
    updates,
    whole,
)
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.convolution import conv, window
from burnish.plan.cpu.gradients import along as along_gradients
from burnish.plan.cpu.gradients import attention as attention_gradients
from burnish.plan.cpu.gradients import blocks as gradients
from burnish.plan.cpu.gradients import recurrent as recurrent_gradients
from burnish.plan.cpu.gradients import rows as row_gradients
from burnish.plan.cpu.gradients import weights as weight_gradients
from burnish.plan.cpu.lowbit import embedding, quantized, rounding
from burnish.plan.cpu.lowbit.rounding import moved
from burnish.plan.cpu.lowbit.sequences import rounded_sequences
from burnish.plan.cpu.lowbit.sums import sum_of_codes
from burnish.plan.cpu.memory import Memory, placed
from burnish.plan.cpu.ml import support_vectors, trees
from burnish.plan.cpu.moves import along, gather, joined, lookup
from burnish.plan.cpu.moves.sampled import SamplingTape
from burnish.plan.cpu.products import batched, einsum, fourier
from burnish.plan.cpu.reductions import loss, moments, rows
from burnish.plan.cpu.samples.chosen import stretches
from burnish.plan.cpu.samples.loops import lower_by_sample
from burnish.plan.cpu.table import LOWERED, Declined, lower

__all__ = [
    "LOWERED",
    "Builder",
    "Declined",
    "Memory",
    "SamplingTape",
    "along",
    "along_gradients",
    "assign",
    "attention",
    "attention_gradients",
    "batched",
    "conv",
    "draws",
    "einsum",
    "elementwise",
    "embedding",
    "float16",
    "fourier",
    "gather",
    "gradients",
    "joined",
    "lookup",
    "loss",
    "lower",
    "lower_by_sample",
    "moments",
    "moved",
    "placed",
    "quantized",
    "recurrent",
    "recurrent_gradients",
    "rounded_sequences",
    "rounding",
    "row_gradients",
    "rows",
    "stretches",
    "sum_of_codes",
    "support_vectors",
    "trees",
    "updates",
    "weight_gradients",
    "whole",
    "window",
]
