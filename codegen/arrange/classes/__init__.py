"""Groups of statements become classes.

In: groups. Out: a ClassPlan for each distinct body, constructors that make them, and
the path of every weight.
Invariant: the numbers equal the flat form; each weight has one path.
"""
