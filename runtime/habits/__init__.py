"""Hints for names of PyTorch and NumPy that differ in Burnish.

Asked only where an attribute is missing, so that the error says what to write instead.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, NoReturn

from burnish.errors import ArgumentError


class Fixed:
    """A read-only property or method; assigning to it raises an error with advice."""

    def __init__(self, read: Any, instead: str):
        self.read, self.instead, self.__doc__ = read, instead, read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self.read.__get__(owner, kind)

    def __set__(self, owner: Any, value: Any) -> NoReturn:
        raise AttributeError(
            f"{type(owner).__name__}.{self.name} is not assigned; write {self.instead}"
        )


class Count(int):
    """The number of a module's parameters; a call says that it is no method."""

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise ArgumentError(
            "num_params: expected no call, it is a number; write model.num_params"
        )


class Size(int):
    """The number of elements; a call, PyTorch's `x.size()`, says where the shape is.

    NumPy sees a plain integer, which widens no dtype; so do operators.
    """

    def __call__(self, axis: int | None = None, dim: int | None = None) -> NoReturn:
        axis = dim if axis is None else axis
        instead = "x.shape" if axis is None else f"x.shape[{axis}]"
        raise ArgumentError(
            f"size: expected no call, it is the number of elements as in NumPy; "
            f"write {instead}"
        )

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> Any:
        plain = (int(x) if isinstance(x, Size) else x for x in inputs)
        return getattr(ufunc, method)(*plain, **options)


class TensorModule(ModuleType):
    """`burnish.tensor`; a call, PyTorch's `torch.tensor(data)`, says what makes one."""

    def __call__(self, *data: Any, **options: Any) -> NoReturn:
        raise ArgumentError("burnish.tensor: expected no call; write Tensor(data)")


def missing(owner: str, name: str, known: Any, kind: str = "") -> AttributeError:
    """The error for an attribute that `owner` lacks, with what to write instead.

    owner: "Tensor", "Module", "Optimizer" or a package; known: the names that it has;
    kind: what to call it.
    """
    if _is_module(owner, name):  # `from burnish import data` asks for a name first
        write = f"write from {owner} import {name}"
        return AttributeError(f"{owner} has no {name!r} before its import: {write}")
    from burnish.habits.meant import meant

    return meant(owner, name, known, kind)


def _is_module(package: str, name: str) -> bool:
    """Whether a package has a module of that name, imported or not."""
    path = vars(sys.modules[package]).get("__path__") if package in sys.modules else ()
    return bool(path and PathFinder.find_spec(f"{package}.{name}", path))
