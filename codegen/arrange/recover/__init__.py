"""Scopes for a graph that has none.

In: a program without scopes. Out: the same statements with scopes, names for layers.
Invariant: cosmetic; a scope decides in which class a statement is, never a result.
"""
