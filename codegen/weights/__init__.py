"""Weights on their way from the model file to the weights file.

In: the Program's weights. Out: entries of the weights file, written in pieces.
Invariant: values are read when they are written; none is kept in memory.
"""
