"""Symbolic shape propagation: the size of every axis, by name where it is symbolic.

In: a Graph. Out: the same Graph with shapes.
Invariant: a size is noted only where it follows from the inputs' sizes.
"""
