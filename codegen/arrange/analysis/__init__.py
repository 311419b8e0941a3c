"""What a program's classes have in common: hashes, orders, places of sizes.

In: statements, or one class. Out: a hash, an order, a list of places.
Invariant: nothing is changed; a class that is given comes back as a new object.
"""
