"""Weights as the author kept them, where an exporter merged, copied or changed them.

In: a Graph. Out: a Graph with other initializers for the same numbers.
Invariant: what the file's weights compute, these compute; names are the author's.
"""
