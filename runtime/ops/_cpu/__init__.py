"""Operators' kernels of the C library, and those of their gradients.

Takes float32 arrays that are worth a call, where the library was built before; for
everything else the operator's plain value takes over. Results are the same bits for any
number of threads. Importing a module of this package registers its kernels.
"""
