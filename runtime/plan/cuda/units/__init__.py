"""Units: calls of a program that one launch does together.

In: a captured program, its precision, and the weights it reads.
Out: units in the order they run: one call, or several that were joined.
Invariant: a joined unit's numbers are those of its calls, in the precision asked for.
"""
