"""Shapes of values, and names of axes, as the file means them.

In: the Graph as it was read. Out: the Graph with inferred shapes, and axes renamed
where one name was given to sizes that may differ.
Invariant: a declared shape that inference contradicts is an error or is reported.
"""
