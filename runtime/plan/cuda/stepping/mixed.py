"""Mixed: a step of training whose products are in half precision, the rest in float32.

Parameters stay float32, and so do their gradients and what optimizers remember. What
products multiply is rounded to 16 bits; what only moves or gates values computes in
what it is given; every other operator, losses, norms and softmax among them, is given
float32. Sums are float32 inside of all kernels.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from burnish._engine.pytree import leaves, mapped
from burnish.autodiff import Gradients, Variable
from burnish.backend.cuda import layout
from burnish.backend.cuda.elementwise import fused
from burnish.backend.cuda.elementwise.casts import cast_all, turned_all
from burnish.nn.core.param import Stored
from burnish.operator import Operator
from burnish.ops._kernels.slopes import dropped
from burnish.ops._shapes import cast
from burnish.ops.activation.piecewise import relu
from burnish.ops.activation.smooth import gelu, sigmoid, swish
from burnish.ops.arrays.index import getitem
from burnish.ops.arrays.shape import concat_of, reshape, split, transpose
from burnish.ops.elementwise.arithmetic import add, mul
from burnish.ops.linalg.linear import linear, matmul
from burnish.ops.normalization import batch_norm_train
from burnish.ops.sequences.attention import scaled_dot_product_attention
from burnish.ops.spatial.conv import conv, conv_transpose
from burnish.ops.spatial.pool import max_pool
from burnish.optim.core.rounded import keep_rounded

_SINGLE = np.dtype(np.float32)

_CONVOLUTIONS: frozenset[Any] = frozenset((conv, conv_transpose))

_PRODUCTS: frozenset[Any] = frozenset((linear, matmul)) | _CONVOLUTIONS
"""Operators whose float32 arguments are rounded."""

_MIXED: frozenset[Any] = frozenset((add, mul))
"""Those that give float32 for half precision beside float32."""

_MOVES: frozenset[Any] = frozenset(
    (getitem, max_pool, concat_of, reshape, split, transpose)
)
_GATES: frozenset[Any] = frozenset((relu, gelu, sigmoid, swish, dropped))
_EITHER = _MIXED | _MOVES | _GATES | {cast}
"""Operators that compute in the dtype that they are given."""

WHOLE: frozenset[Any] = frozenset((scaled_dot_product_attention, batch_norm_train))
"""Functions made of operators that are one call."""


def _rounded(x: Any, *, dtype: Any, last: bool, made: Any = None) -> Any:
    """x with another dtype; last: with its channels side by side in memory.

    made: the result, where it is there already. A parameter's gradient stays in half
    precision: `Mixed.widened` casts those of all.
    """
    return fused.cast(layout.last(x) if last else x, dtype) if made is None else made


rounded: Operator[..., Any, Any] = Operator(_rounded)
rounded_parameter: Operator[..., Any, Any] = Operator(_rounded)


def _widened(g: Any, y: Any, x: Any, *, dtype: Any, last: bool, made: Any) -> Any:
    return cast(g, dtype=x.dtype)


def _kept(g: Any, y: Any, x: Any, *, dtype: Any, last: bool, made: Any) -> Any:
    return cast(g, dtype=x.dtype) if isinstance(g, Variable) else g


rounded.vjp("x")(_widened)
rounded_parameter.vjp("x")(_kept)


_ROUNDINGS = (rounded, rounded_parameter)


class Mixed:
    """What a step's calls are given; dtype is that of half precision.

    A rounded value is kept as long as what it is made of, and serves every call.
    parameters: those that were rounded, and whether with channels last, which `prepare`
    does in two launches.
    """

    def __init__(self, dtype: np.dtype[Any]):
        self.dtype = dtype
        self.parameters: dict[int, tuple[Stored, bool]] = {}
        self._made: dict[int, tuple[Any, bool, Any]] = {}
        self._kept: dict[int, tuple[Any, Any, list[Variable]]] = {}

    def given(self, function: Any, args: Any, options: Any) -> Any:
        """A call's arguments and options, in the precision that it is for."""
        if function in _PRODUCTS:
            last = function in _CONVOLUTIONS
            return mapped((args, options), lambda item: self._half(item, last))
        if function is scaled_dot_product_attention:
            return (*map(self._half, args[:3]), *args[3:]), options
        if not isinstance(function, Operator) or function in _ROUNDINGS:
            return args, options
        kinds = {i.dtype for i in leaves((args, options)) if _is_float(i, self.dtype)}
        if function in _EITHER and (len(kinds) < 2 or function in _MIXED):
            return args, options
        return mapped((args, options), self.single)

    def prepare(self, parameters: Iterable[tuple[Stored, bool]]) -> None:
        """Round parameters that a step is going to multiply, all at once."""
        groups: dict[bool, list[Stored]] = {False: [], True: []}
        for item, is_turned in parameters:
            groups[is_turned].append(item)
        for is_turned, items in groups.items():
            arrays = [item.held for item in items]
            dtype = self.dtype
            made = turned_all(arrays, dtype) if is_turned else cast_all(arrays, dtype)
            for item, array, each in zip(items, arrays, made, strict=True):
                self._made[id(item)] = array, is_turned, each

    def widened(self, gradients: Gradients, scale: Any = None) -> None:
        """Give parameters' gradients float32, divided by a factor if there is one.

        Without one they are cast when somebody asks.
        """
        if scale is None:
            keep_rounded(gradients, self.dtype)
        else:
            gradients.change(lambda arrays: cast_all(arrays, _SINGLE, scale))

    def halves(self, args: Any) -> Any:
        """Arguments in half precision where they are float32."""
        return tuple(map(self._half, args))

    def forget(self, stored: Stored) -> None:
        """A parameter or buffer has other values."""
        self._kept.pop(id(stored), None)
        self._made.pop(id(stored), None)

    def single(self, item: Any) -> Any:
        """A value in float32 where it is in half precision."""
        if isinstance(item, Variable) and item.dtype == self.dtype:
            return cast(item, dtype=_SINGLE)
        return item

    def _half(self, item: Any, last: bool = False) -> Any:
        if not isinstance(item, Variable) or item.dtype != _SINGLE:
            return item
        own = item.resolve() if item.derived else item
        array = own.held if isinstance(own, Stored) else own.data
        kept, key = self._kept, id(own)
        known = kept.get(key)
        if known is not None and known[0]() is own and known[1] is array:
            copies = known[2]
            return copies.pop() if len(copies) > 1 else copies[0]
        is_turned = last and len(own.shape) > 2 and set(own.shape[2:]) != {1}
        options: dict[str, Any] = {"dtype": self.dtype, "last": is_turned}
        if isinstance(own, Stored) and own.scheme is None:
            self.parameters[key] = own, is_turned
            *of, known_made = self._made.get(key, (None, False, None))
            given = known_made if of[0] is array and of[1] == is_turned else None
            made = rounded_parameter(own, **options, made=given)
        else:
            made = rounded(own, **options)
        self.keep(own, array, [made])
        return made

    def keep(self, own: Any, array: Any, copies: list[Variable]) -> None:
        """What a value of `array` is in half precision; the last one serves on."""
        kept, key = self._kept, id(own)
        kept[key] = weakref.ref(own, lambda _: kept.pop(key, None)), array, copies


def _is_float(item: Any, half: np.dtype[Any]) -> bool:
    return isinstance(item, Variable) and item.dtype in (half, _SINGLE)
