"""Helpers of onnxruntime's operators: masks, caches, layouts, packed numbers.

In: a body's values and attributes. Out: the ONNX nodes for one step of it.
Invariant: a body is declared by its operator's name, and no operator is named here.
"""
