"""Internal helpers that several packages of the runtime import.

In: constructor arguments, nested lists and dicts, calls that failed, values to print.
Out: the same validated, flattened, explained, as text.
Invariant: no operator, layer or tensor is known here.
"""
