"""Classes that nearly agree become one.

In: classes, small to large. Out: fewer classes, with arguments for sizes and switches.
Invariant: with the arguments of its call, a merged class is the class that it replaces.
"""
