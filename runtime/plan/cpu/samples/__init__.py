"""Stretches of nodes that run for one sample after the other, so that caches hold them.

In: a graph and the nodes' records. Out: loops over the samples of a batch.
Invariant: no node in a loop reads another sample.
"""
