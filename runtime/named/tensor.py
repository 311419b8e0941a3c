"""NamedTensor: a tensor, the names of its axes, and operators that go by them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish import ops
from burnish.autodiff import Gradients, Variable
from burnish.errors import InputError
from burnish.named.axes import (
    Names,
    axes,
    axis,
    check_sizes,
    common,
    different,
    listed,
    listed_sizes,
)
from burnish.tensor import Tensor


def _arithmetic(function: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    """An operator of two tensors on axes of the same names, as a method."""

    def apply(self: NamedTensor, other: Any) -> NamedTensor:
        a, b, names = self._aligned(other, function.__name__)
        return NamedTensor(function(b, a) if reflected else function(a, b), *names)

    return apply


def _reduction(name: str) -> Any:
    """A tensor's method over the axes of some names, or of all."""

    def apply(self: NamedTensor, *names: str, **options: Any) -> NamedTensor:
        places = axes(self.sizes, names, name) or None
        made = getattr(self.tensor, name)(axis=places, **options)
        rest = [each for each in self.names if names and each not in names]
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
        if len(names) != self.tensor.ndim or not different(names):
            raise InputError(
                f"NamedTensor: expected {self.tensor.ndim} different names for shape "
                f"{self.tensor.shape}, got {listed(names)}"
            )

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each axis by name, in order."""
        return dict(zip(self.names, self.tensor.shape, strict=True))

    def __repr__(self) -> str:
        return f"NamedTensor{_kind(self)}: {self.tensor!r}"

    # --- arithmetic and comparison, element by element ---

    __add__ = _arithmetic(operator.add)
    __radd__ = _arithmetic(operator.add, reflected=True)
    __sub__ = _arithmetic(operator.sub)
    __rsub__ = _arithmetic(operator.sub, reflected=True)
    __mul__ = _arithmetic(operator.mul)
    __rmul__ = _arithmetic(operator.mul, reflected=True)
    __truediv__ = _arithmetic(operator.truediv)
    __rtruediv__ = _arithmetic(operator.truediv, reflected=True)
    __floordiv__ = _arithmetic(operator.floordiv)
    __rfloordiv__ = _arithmetic(operator.floordiv, reflected=True)
    __mod__ = _arithmetic(operator.mod)
    __rmod__ = _arithmetic(operator.mod, reflected=True)
    __pow__ = _arithmetic(operator.pow)
    __rpow__ = _arithmetic(operator.pow, reflected=True)
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

    def __abs__(self) -> NamedTensor:
        return self.map(operator.abs)

    def map(self, function: Callable[..., Any], *names: str) -> NamedTensor:
        """The result of a function of the tensor; it keeps the shape.

        names: axes that it is given as `axis`: `x.map(ops.softmax, "time")`.
        """
        places = axes(self.sizes, names, "map")
        options = {"axis": places if len(places) > 1 else places[0]} if places else {}
        made = function(self.tensor, **options)
        if made.shape != self.tensor.shape:
            raise InputError(
                f"map: expected a function that keeps the shape of {_kind(self)}, "
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
        made = self.tensor.argmax(axis(self.sizes, name, "argmax"))
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
                f"{_kind(other)} and {listed(names)}"
            )
        check_sizes(self.sizes, other.sizes, "dot")
        for side in (self, other):
            axes(side.sizes, names, "dot")
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
                f"matmul: expected two named tensors with axes, got {_kind(self)} "
                f"and {_kind(other)}"
            )
        inner = self.names[-1]
        if other.names[-2:][0] != inner:  # of a vector: its only one
            raise InputError(
                f"matmul: expected the left's last name {inner!r} as the right's last "
                f"but one, got {_kind(self)} and {_kind(other)}; "
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
                f"permute: expected an order of {listed(self.names)}, "
                f"got {listed(names)}"
            )
        places = [self.names.index(name) for name in names]
        return NamedTensor(self.tensor.permute(*places), *names)

    def swap(self, one: str, other: str) -> NamedTensor:
        """Two axes in each other's place, with their names."""
        a, b = axis(self.sizes, one, "swap"), axis(self.sizes, other, "swap")
        names = list(self.names)
        names[a], names[b] = other, one
        return self.permute(*names)

    def rename(self, **names: str) -> NamedTensor:
        """Other names, the same tensor: `x.rename(time="place")`."""
        for name in names:
            axis(self.sizes, name, "rename")
        return NamedTensor(self.tensor, *(names.get(n, n) for n in self.names))

    def select(self, **places: int | slice) -> NamedTensor:
        """One place of an axis, which goes, or a slice: `x.select(time=0)`."""
        for name in places:
            axis(self.sizes, name, "select")
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

    def _aligned(self, other: Any, where: str) -> tuple[Any, Any, Names]:
        """Both sides with axes in one order, and the names of these."""
        if not isinstance(other, NamedTensor):
            shape = np.shape(other.data if isinstance(other, Variable) else other)
            if shape:
                raise InputError(
                    f"{where}: expected a NamedTensor or a number beside "
                    f"{_kind(self)}, got {type(other).__name__} of shape "
                    f"{shape}; give its axes names"
                )
            return self.tensor, other, self.names
        names = common(self.sizes, other.sizes, where)
        return self._spread(names), other._spread(names), names

    def _spread(self, names: Names) -> Tensor:
        """The tensor with axes in the order of `names`, of size 1 for missing ones."""
        own = self.permute(*(name for name in names if name in self.names)).tensor
        return own[tuple(slice(None) if n in self.names else None for n in names)]

    def _matrices(self, shared: Names, rows: Names, columns: Names) -> Tensor:
        """(shared..., all rows, all columns)"""
        sizes = self.sizes
        shape = [sizes[name] for name in shared]
        shape += [math.prod(sizes[n] for n in group) for group in (rows, columns)]
        ordered = self.permute(*shared, *rows, *columns)
        return ordered.tensor.reshape(*shape)


def _kind(value: Any) -> str:
    """The description of a value given for a named tensor, for a message."""
    if isinstance(value, NamedTensor):
        return listed_sizes(value.sizes)
    return type(value).__name__
