"""The author's module tree, from what exporters left of it.

In: statements with the scopes that the file has. Out: scopes, and groups of statements.
Invariant: statements keep what they compute; only their scope and their order change,
the order within what the data flow allows.
"""
