"""The known forms, one file a family; the first rule that fits at a node wins."""

from burnish.codegen.passes.pattern import Rule
from burnish.codegen.passes.rules import (
    activation,
    attended,
    attention,
    backwards,
    channel,
    einsum,
    groups,
    lengths,
    linear,
    lookup,
    measure,
    norm,
    numbers,
    places,
    pool,
    rotary,
    shrink,
    shuffle,
)

RULES: tuple[Rule, ...] = (
    *einsum.RULES,
    *attention.RULES,
    *activation.RULES,
    *norm.RULES,
    *groups.RULES,
    *linear.RULES,
    *channel.RULES,
    *lengths.RULES,
    *lookup.RULES,
    *backwards.RULES,
    *places.RULES,
    *attended.RULES,
    *numbers.RULES,
    *rotary.RULES,
    *shrink.RULES,
    *shuffle.RULES,
    *pool.RULES,
    *measure.RULES,  # last: a norm has a variance inside
)

__all__ = ["RULES"]
