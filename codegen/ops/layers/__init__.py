"""Rules of operators that are layers where their parameters are weights.

In: arrays and weights. Out: a layer of `nn`; a function where weights are computed.
Invariant: layer and function give the same numbers.
"""

from burnish.codegen.ops.layers import attention, conv, linear, norm, pool, recurrent

__all__ = ["attention", "conv", "linear", "norm", "pool", "recurrent"]
