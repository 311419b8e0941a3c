"""Constant folding, dead code, and operators that change nothing.

In: a Graph. Out: a Graph with fewer nodes.
Invariant: the numbers are the same to the last bit; nothing random is folded.
"""
