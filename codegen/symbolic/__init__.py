"""Symbolic sizes and arithmetic on them.

In: names and numbers of axes. Out: sums of products of names; Python expressions.
Invariant: what is simplified is equal for every value that the names can have.
"""
