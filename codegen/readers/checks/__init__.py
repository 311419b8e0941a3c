"""Checks of a model before anything is computed from it.

In: a ModelProto or Graph. Out: nothing, or a ReadError that names the place.
Invariant: a check changes nothing, and its time and memory are bounded by the file's.
"""
