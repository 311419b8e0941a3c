"""Fusion rules, one file a family; the first rule that matches at a node wins.

In: a node, and the pattern that ends in it. Out: one operator for the whole pattern.
Invariant: a rule declines, with a reason, unless its constants and shapes prove it.
"""

from burnish.codegen.passes.layout import written_slices
from burnish.codegen.passes.pattern import Rule
from burnish.codegen.passes.rules import (
    activation,
    advanced_index,
    einsum,
    group_norm,
    linear,
    lookup,
    moments,
    norm,
    piecewise,
    pool,
    reverse,
    scale_shift,
    shuffle_axes,
    splat,
    tensorflow,
)
from burnish.codegen.passes.rules.attention import mask_split, product, rotary

RULES: tuple[Rule, ...] = (
    *einsum.RULES,
    *product.RULES,
    *activation.RULES,
    *norm.RULES,
    *group_norm.RULES,
    *linear.RULES,
    *scale_shift.RULES,
    *tensorflow.RULES,
    *lookup.RULES,
    *reverse.RULES,
    *advanced_index.RULES,
    *written_slices.RULES,
    *mask_split.RULES,
    *splat.RULES,
    *rotary.RULES,
    *piecewise.RULES,
    *shuffle_axes.RULES,
    *pool.RULES,
    *moments.RULES,  # last: a norm has a variance inside
)

__all__ = ["RULES"]
