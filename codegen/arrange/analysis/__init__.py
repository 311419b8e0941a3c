"""Analyses of a program's classes: structural hashes, schedules, holes, repeats.

In: statements, or one class. Out: a hash, an order, a list of places.
Invariant: nothing is changed; a class that is given comes back as a new object.
"""
