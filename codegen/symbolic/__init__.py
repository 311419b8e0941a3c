"""Symbolic sizes and arithmetic on them.

In: names and numbers of axes. Out: sums of products of names; Python expressions.
Invariant: a simplified size equals the original for all values of its names.
"""
