"""What rules are made of: their declaration and traits, and helpers to write them with.

In: a function whose signature is an operator's schema. Out: a `Rule` in the registry,
found by domain, operator and version; expressions for what a rule calls.
Invariant: no operator is named here.
"""
