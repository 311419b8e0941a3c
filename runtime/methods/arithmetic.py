"""Element-wise methods of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import method, reflected

_equal, _not_equal = method(ops.equal), method(ops.not_equal)

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ArithmeticMethods(Variable):
    """Python's operators and NumPy's functions, element by element."""

    __slots__ = ()

    __add__ = method(ops.add)
    __radd__ = reflected(ops.add)
    __sub__ = method(ops.sub)
    __rsub__ = reflected(ops.sub)
    __mul__ = method(ops.mul)
    __rmul__ = reflected(ops.mul)
    __truediv__ = method(ops.div)
    __rtruediv__ = reflected(ops.div)
    __floordiv__ = method(ops.floor_div)
    __rfloordiv__ = reflected(ops.floor_div)
    __mod__ = method(ops.mod)
    __rmod__ = reflected(ops.mod)
    __pow__ = method(ops.pow)
    __rpow__ = reflected(ops.pow)
    __matmul__ = method(ops.matmul)
    __rmatmul__ = reflected(ops.matmul)
    __neg__ = method(ops.neg)
    __abs__ = method(ops.abs)
    __round__ = method(ops.round)
    __floor__ = method(ops.floor)
    __ceil__ = method(ops.ceil)

    # --- bits, and logic on booleans ---

    __and__ = method(ops.bitwise_and)
    __rand__ = reflected(ops.bitwise_and)
    __or__ = method(ops.bitwise_or)
    __ror__ = reflected(ops.bitwise_or)
    __xor__ = method(ops.bitwise_xor)
    __rxor__ = reflected(ops.bitwise_xor)
    __invert__ = method(ops.bitwise_not)
    __lshift__ = method(ops.shift_left)
    __rlshift__ = reflected(ops.shift_left)
    __rshift__ = method(ops.shift_right)
    __rrshift__ = reflected(ops.shift_right)

    # --- comparison, element by element ---

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return _equal(self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return _not_equal(self, other)

    __gt__ = method(ops.greater)
    __ge__ = method(ops.greater_or_equal)
    __lt__ = method(ops.less)
    __le__ = method(ops.less_or_equal)
    __hash__ = object.__hash__

    # --- functions of each element ---

    abs = method(ops.abs)
    sign = method(ops.sign)
    sqrt = method(ops.sqrt)
    square = method(ops.square)
    reciprocal = method(ops.reciprocal)
    exp = method(ops.exp)
    expm1 = method(ops.expm1)
    log = method(ops.log)
    log1p = method(ops.log1p)
    floor = method(ops.floor)
    ceil = method(ops.ceil)
    round = method(ops.round)
    trunc = method(ops.trunc)
    clip = method(ops.clip)
    sin = method(ops.sin)
    cos = method(ops.cos)
    tan = method(ops.tan)
    sinh = method(ops.sinh)
    cosh = method(ops.cosh)
    tanh = method(ops.tanh)
    asin = method(ops.asin)
    acos = method(ops.acos)
    atan = method(ops.atan)
    asinh = method(ops.asinh)
    acosh = method(ops.acosh)
    atanh = method(ops.atanh)
    deg2rad = method(ops.deg2rad)
    rad2deg = method(ops.rad2deg)
    erf = method(ops.erf)
    relu = method(ops.relu)
    sigmoid = method(ops.sigmoid)
    is_nan = method(ops.is_nan)
    is_inf = method(ops.is_inf)
    is_finite = method(ops.is_finite)

    # --- functions of two tensors ---

    pow = method(ops.pow)
    maximum = method(ops.maximum)
    minimum = method(ops.minimum)
    hypot = method(ops.hypot)
    atan2 = method(ops.atan2)
    logical_and = method(ops.logical_and)
    logical_or = method(ops.logical_or)
    logical_xor = method(ops.logical_xor)
    logical_not = method(ops.logical_not)
    is_close = method(ops.is_close)

    fmod = method(ops.fmod)

    def all_close(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Whether |self - other| <= atol + rtol * |other| everywhere."""
        return ops.all_close(self, other, rtol, atol)

    def contains_nan(self) -> bool:
        """Whether any element is not a number."""
        return ops.contains_nan(self)
