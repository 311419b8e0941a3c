"""A step of one token: few rows, one new position, the next token.

In: a few rows, weights as they are stored, caches in place, a position on the GPU.
Out: the rows of the next layer, and the token that the next step reads.
Invariant: the position is read on the GPU, so one graph serves every position.
"""
