"""Operators by names that Python's own functions have."""

from burnish.ops.arrays import along
from burnish.ops.elementwise import arithmetic

abs = arithmetic.abs_
all = along.all_
any = along.any_
max = along.max_
min = along.min_
pow = arithmetic.pow_
round = arithmetic.round_
sum = along.sum_
