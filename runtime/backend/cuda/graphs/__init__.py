"""CUDA graphs: capture, replay, and arguments that change between replays.

In: calls that launch kernels on one stream.
Out: a graph that launches them again, and the numbers that the host updates.
Invariant: addresses in a graph stay alive with it; nothing else is captured.
"""
