"""Rules of operators on whole arrays: views, indexing, reductions, new arrays.

In: arrays, and axes or shapes of integers. Out: methods of a tensor and functions.
Invariant: axes and shapes that the host computes stay integers of Python.
"""

from burnish.codegen.ops.arrays import create, index, padding, reduce, shape

__all__ = ["create", "index", "padding", "reduce", "shape"]
