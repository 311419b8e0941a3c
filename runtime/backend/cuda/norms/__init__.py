"""Norms, softmax and losses: one group of threads for a row or a channel.

In: arrays, the axis of a row, weights.
Out: normalized arrays, softmax, cross entropy, and their gradients.
Invariant: statistics are in float32, or float64 for float64; no synchronization.
"""
