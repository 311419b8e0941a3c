"""Inline model-local functions, and values that bodies capture.

In: a ModelProto or Graph with calls of its functions. Out: the same without them.
Invariant: the numbers stay; each call site becomes a scope; linear time in the result.
"""
