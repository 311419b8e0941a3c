"""Every operator, by family; names are ONNX's in snake case.

    from burnish import ops
    ops.reduce_sum(x, axes=(0,))
"""

from burnish.ops._shapes import broadcast_to, sum_to
from burnish.ops.arithmetic import add, exp, mul, neg, sub
from burnish.ops.linear import linear, matmul

__all__ = ["add", "broadcast_to", "exp", "linear", "matmul", "mul", "neg", "sub", "sum_to"]
