"""Memory of NumPy's large arrays, which the library keeps for later arrays."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from burnish.kernels.interpreter import is_cpython

_MODULE = "numpy._core._multiarray_umath"
_SET, _GET = 304, 305  # places in the table of NumPy's C interface


def keep(handler: Callable[[int], int]) -> None:
    """Let the library allocate the arrays of this context, in place of NumPy's default.

    handler: gives the library's allocator in front of another one. A context is one of
    `contextvars`: other threads, and what has an allocator of its own, keep theirs.
    """
    table = getattr(import_module(_MODULE), "_ARRAY_API", None)
    if table is None or not is_cpython():
        return
    import ctypes

    held, address = ctypes.py_object, ctypes.c_void_p
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = address, [held, address]
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = held, [address, address, address]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = address, [held]
    functions = (ctypes.c_size_t * (_GET + 1)).from_address(pointer(table, None))
    found: Any = ctypes.PYFUNCTYPE(held)(functions[_GET])()
    name = name_of(found)  # NumPy's own string, there as long as any array is
    default = pointer(found, name)
    if ctypes.string_at(default) == b"default_allocator":
        made = capsule(handler(default), name, None)
        ctypes.PYFUNCTYPE(held, held)(functions[_SET])(made)
