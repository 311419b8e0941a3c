"""Generating tokens: a model's step of one token as one CUDA graph.

In: a model with a cache, its weights (also quantized), and a prompt.
Out: tokens, chosen on the GPU, by one graph for all positions.
Invariant: the cache is written in place; numbers are those of the plain call.
"""
