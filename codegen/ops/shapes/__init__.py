"""Shape transfer of nodes, declared with the operators' rules as their `shapes`.

In: a node, the sizes of its inputs, a way to ask for the numbers in them. Out: the
sizes of each output, `None` where they are not known.
Invariant: the arithmetic of each operator is that of `symbolic/transfer`.
"""
