"""Tensors whose axes have names: operators check and align them by name.

queries = NamedTensor(q, "batch", "time", "unit")
keys = NamedTensor(k, "batch", "place", "unit")
shares = queries.dot(keys, "unit").map(ops.softmax, "place")
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from burnish import ops
from burnish.autodiff import Gradients, Variable
from burnish.errors import InputError
from burnish.tensor import Tensor


def _arithmetic(function: Callable[[Any, Any], Any]) -> Any:
    """An operator of two tensors on axes of the same names, as a method."""

    def apply(self: NamedTensor, other: Any) -> NamedTensor:
        a, b, names = self._aligned(other, function.__name__)
        return NamedTensor(function(a, b), *names)

    return apply


def _reflected(function: Callable[[Any, Any], Any]) -> Any:
    """The method that Python tries on the right of a number."""

    def apply(self: NamedTensor, other: Any) -> NamedTensor:
        a, b, names = self._aligned(other, function.__name__)
        return NamedTensor(function(b, a), *names)

    return apply


def _reduction(name: str) -> Any:
    """A tensor's method over the axes of some names, or of all."""

    def apply(self: NamedTensor, *names: str, **options: Any) -> NamedTensor:
        axes = tuple(self._axis(each, name) for each in names) or None
        made = getattr(self.tensor, name)(axis=axes, **options)
        rest = [each for each in self.names if axes and each not in names]
        return NamedTensor(made, *rest)

    apply.__name__ = name
    return apply


class NamedTensor:
    """A tensor (or what `Tensor` takes) with one name for each axis.

    Arithmetic takes axes of one name together, whatever their order, and broadcasts
    over the names that one side alone has; there, all names of one side have to be
    among the other's, so that nothing grows by mistake. The result has the order of the
    side with more names, else the left one's. Sizes of one name have to be equal.

    Raises InputError for names that are not different, missing, or too many.
    """

    def __init__(self, data: Any, *names: str):
        self.tensor = data if isinstance(data, Tensor) else Tensor(data)
        self.names = names
        if len(names) != self.tensor.ndim or not _different(names):
            raise InputError(
                f"NamedTensor: expected {self.tensor.ndim} different names for shape "
                f"{self.tensor.shape}, got {_listed(names)}"
            )

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each axis by name, in order."""
        return dict(zip(self.names, self.tensor.shape, strict=True))

    def __repr__(self) -> str:
        return f"NamedTensor{_described(self)}: {self.tensor!r}"

    # --- arithmetic and comparison, element by element ---

    __add__ = _arithmetic(operator.add)
    __radd__ = _reflected(operator.add)
    __sub__ = _arithmetic(operator.sub)
    __rsub__ = _reflected(operator.sub)
    __mul__ = _arithmetic(operator.mul)
    __rmul__ = _reflected(operator.mul)
    __truediv__ = _arithmetic(operator.truediv)
    __rtruediv__ = _reflected(operator.truediv)
    __pow__ = _arithmetic(operator.pow)
    __rpow__ = _reflected(operator.pow)
    __eq__ = _arithmetic(operator.eq)
    __ne__ = _arithmetic(operator.ne)
    __gt__ = _arithmetic(operator.gt)
    __ge__ = _arithmetic(operator.ge)
    __lt__ = _arithmetic(operator.lt)
    __le__ = _arithmetic(operator.le)
    __hash__ = object.__hash__
    __array_ufunc__ = None  # array + named asks the named tensor, which refuses arrays

    def __neg__(self) -> NamedTensor:
        return self.map(operator.neg)

    def map(self, function: Callable[..., Any], *names: str) -> NamedTensor:
        """What a function makes of the tensor; it keeps the shape.

        names: axes that it is given as `axis`: `x.map(ops.softmax, "time")`.
        """
        axes = [self._axis(name, "map") for name in names]
        options = {"axis": axes[0] if len(axes) == 1 else tuple(axes)} if axes else {}
        made = function(self.tensor, **options)
        if made.shape != self.tensor.shape:
            raise InputError(
                f"map: expected a function that keeps the shape of {_described(self)}, "
                f"got shape {made.shape}"
            )
        return NamedTensor(made, *self.names)

    # --- over axes: sum("time"), sum("time", "unit"), sum() over all ---

    sum = _reduction("sum")
    mean = _reduction("mean")
    prod = _reduction("prod")
    max = _reduction("max")
    min = _reduction("min")
    var = _reduction("var")
    std = _reduction("std")

    def argmax(self, name: str) -> NamedTensor:
        """Where along an axis the largest value is."""
        made = self.tensor.argmax(self._axis(name, "argmax"))
        return NamedTensor(made, *(each for each in self.names if each != name))

    # --- products ---

    def dot(self, other: NamedTensor, *names: str) -> NamedTensor:
        """Products summed over the axes of `names`, which both have.

        Other names that both have go together. The result has this tensor's names that
        are left, then the other's own.
        """
        if not names or not isinstance(other, NamedTensor):
            raise InputError(
                f"dot: expected a NamedTensor and names of axes to sum over, got "
                f"{_described(other)} and {_listed(names)}"
            )
        self._check_sizes(other, "dot")
        for side in (self, other):
            for name in names:
                side._axis(name, "dot")
        shared = [n for n in self.names if n in other.names and n not in names]
        rows = [n for n in self.names if n not in other.names]
        columns = [n for n in other.names if n not in self.names]
        a = self._matrices(shared, rows, names)
        b = other._matrices(shared, names, columns)
        sizes = self.sizes | other.sizes
        found = [*shared, *rows, *columns]
        product = ops.matmul(a, b).reshape(*(sizes[name] for name in found))
        left = [name for name in self.names if name not in names]
        return NamedTensor(product, *found).permute(*left, *columns)

    def __matmul__(self, other: NamedTensor) -> NamedTensor:
        """Matrices as in NumPy: (..., rows, inner) @ (..., inner, columns).

        The inner axes have one name; other names that both have go together.
        """
        if not isinstance(other, NamedTensor) or not self.names or not other.names:
            raise InputError(
                f"matmul: expected two named tensors with axes, got {_described(self)} "
                f"and {_described(other)}"
            )
        inner = self.names[-1]
        if other.names[-2:][0] != inner:  # of a vector: its only one
            raise InputError(
                f"matmul: expected the left's last name {inner!r} as the right's last "
                f"but one, got {_described(self)} and {_described(other)}; "
                f"dot(other, name) sums over any axis"
            )
        if {*self.names[-2:-1]} & {*other.names[-1:]} - {inner}:
            raise InputError(
                f"matmul: expected different names of rows and columns, got "
                f"{other.names[-1]!r} for both; rename one"
            )
        return self.dot(other, inner)

    # --- shape ---

    def permute(self, *names: str) -> NamedTensor:
        """The axes in the order of `names`, which are all of them."""
        if sorted(names) != sorted(self.names):
            raise InputError(
                f"permute: expected an order of {_listed(self.names)}, got "
                f"{_listed(names)}"
            )
        axes = [self.names.index(name) for name in names]
        return NamedTensor(self.tensor.permute(*axes), *names)

    def swap(self, one: str, other: str) -> NamedTensor:
        """Two axes in each other's place, with their names."""
        a, b = self._axis(one, "swap"), self._axis(other, "swap")
        names = list(self.names)
        names[a], names[b] = other, one
        return self.permute(*names)

    def rename(self, **names: str) -> NamedTensor:
        """Other names, the same tensor: `x.rename(time="place")`."""
        for name in names:
            self._axis(name, "rename")
        return NamedTensor(self.tensor, *(names.get(n, n) for n in self.names))

    def select(self, **places: int | slice) -> NamedTensor:
        """One place of an axis, which goes, or a slice: `x.select(time=0)`."""
        for name in places:
            self._axis(name, "select")
        index = tuple(places.get(name, slice(None)) for name in self.names)
        rest = [n for n in self.names if isinstance(places.get(n, slice(0)), slice)]
        return NamedTensor(self.tensor[index], *rest)

    # --- gradients ---

    def require_grad(self) -> NamedTensor:
        """The same values as a leaf that `backward()` finds gradients for."""
        return NamedTensor(self.tensor.require_grad(), *self.names)

    def backward(self) -> Gradients:
        """Gradients of this tensor, which has one element."""
        return self.tensor.backward()

    def grad(self, gradients: Gradients) -> NamedTensor | None:
        """This tensor's gradient, with its names."""
        found = self.tensor.grad(gradients)
        return None if found is None else NamedTensor(found, *self.names)

    # --- alignment ---

    def _axis(self, name: str, where: str) -> int:
        if name not in self.names:
            raise InputError(
                f"{where}: expected a name out of {_listed(self.names)}, got {name!r}"
            )
        return self.names.index(name)

    def _check_sizes(self, other: NamedTensor, where: str) -> None:
        for name in self.names:
            if self.sizes[name] != other.sizes.get(name, self.sizes[name]):
                raise InputError(
                    f"{where}: expected one size of {name!r}, got {_described(self)} "
                    f"and {_described(other)}"
                )

    def _aligned(self, other: Any, where: str) -> tuple[Any, Any, tuple[str, ...]]:
        """Both sides with axes in one order, and the names of these."""
        if not isinstance(other, NamedTensor):
            shape = np.shape(other.data if isinstance(other, Variable) else other)
            if shape:
                raise InputError(
                    f"{where}: expected a NamedTensor or a number beside "
                    f"{_described(self)}, got {type(other).__name__} of shape "
                    f"{shape}; give its axes names"
                )
            return self.tensor, other, self.names
        few, many = sorted((self, other), key=lambda side: len(side.names))
        if extra := [name for name in few.names if name not in many.names]:
            raise InputError(
                f"{where}: expected the names of one side among the other's, got "
                f"{_described(self)} and {_described(other)}; {_listed(extra)} "
                f"is not among {_listed(many.names)}"
            )
        self._check_sizes(other, where)
        names = self.names if len(self.names) == len(many.names) else many.names
        return self._spread(names), other._spread(names), names

    def _spread(self, names: tuple[str, ...]) -> Tensor:
        """The tensor with axes in the order of `names`, of size 1 for missing ones."""
        own = self.permute(*(name for name in names if name in self.names)).tensor
        return own[tuple(slice(None) if n in self.names else None for n in names)]

    def _matrices(
        self, shared: Iterable[str], rows: Iterable[str], columns: Iterable[str]
    ) -> Tensor:
        """(shared..., all rows, all columns)"""
        groups = [*shared], [*rows], [*columns]
        sizes = self.sizes
        shape = [sizes[name] for name in groups[0]]
        shape += [math.prod(sizes[name] for name in group) for group in groups[1:]]
        return self.permute(*groups[0], *groups[1], *groups[2]).tensor.reshape(*shape)


def _different(names: Iterable[Hashable]) -> bool:
    listed = [*names]
    return len(set(listed)) == len(listed) and all(isinstance(n, str) for n in listed)


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _described(value: Any) -> str:
    if not isinstance(value, NamedTensor):
        return type(value).__name__
    return f"({', '.join(f'{name} {size}' for name, size in value.sizes.items())})"
