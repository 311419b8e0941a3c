"""Common subexpressions: computed once and read by all.

In: a Graph. Out: a Graph in which equal values have one producer.
Invariant: random operators are never merged.
"""
