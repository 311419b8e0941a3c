"""Rules of operators that compute element by element, with broadcasting.

In: arrays. Out: operators of Python, functions and activations of the runtime.
Invariant: the result has the shape of one input, or the one to which they broadcast.
"""

from burnish.codegen.ops.elementwise import activation, arithmetic, cast, compare

__all__ = ["activation", "arithmetic", "cast", "compare"]
