"""Recurrent layers from loops over cells, and from rows of single layers.

In: a Graph. Out: a Graph with RNN, GRU, LSTM, and `Recurrent` of domain `burnish`.
Invariant: results and last states are the same; a cell in a Loop is accepted on the
evidence of sampled inputs (empirical).
"""
