"""Infer layers from tensors: which kind, with which options.

In: nodes of the module tree with their tensors. Out: a `Leaf` for each, with its doubt.
Invariant: a layer takes exactly the tensors that it is inferred from.
"""
