"""Sizes that tie a model together become constructor arguments.

In: classes, small to large. Out: the same classes with dim, heads, depth, ... and
defaults that are the file's.
Invariant: with the defaults every constructor gets the numbers that it had.
"""
