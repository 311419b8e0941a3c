"""Attention without the matrix of scores in memory.

In: queries, keys and values (..., L, E), a scale, a mask.
Out: (..., L, E), or None where the general form takes over.
Invariant: the softmax is in float32; a row that sees no key is zero.
"""
