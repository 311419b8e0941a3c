"""Rewrites of a plan's graph: constants are folded, nodes are fused.

In: a graph of captured operators. Out: the same graph with fewer nodes.
Invariant: the results are those of the operators, within rounding.
"""
