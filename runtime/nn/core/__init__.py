"""Modules: attributes that are parameters and other modules, their values by name.

In: tensors, records of values, the classes of layers. Out: `Module`, `Layer`, `Param`.
Invariant: no layer is imported here.
"""
