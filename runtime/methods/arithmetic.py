"""Element-wise methods of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burnish import ops
from burnish.autodiff import Variable
from burnish.methods._bind import method, reflected

if TYPE_CHECKING:
    from burnish.tensor import Tensor


class ArithmeticMethods(Variable):
    """Python's operators and NumPy's functions, element by element."""

    __slots__ = ()

    __add__ = method(lambda: ops.add)
    __radd__ = reflected(lambda: ops.add)
    __sub__ = method(lambda: ops.sub)
    __rsub__ = reflected(lambda: ops.sub)
    __mul__ = method(lambda: ops.mul)
    __rmul__ = reflected(lambda: ops.mul)
    __truediv__ = method(lambda: ops.div)
    __rtruediv__ = reflected(lambda: ops.div)
    __floordiv__ = method(lambda: ops.floor_div)
    __rfloordiv__ = reflected(lambda: ops.floor_div)
    __mod__ = method(lambda: ops.mod)
    __rmod__ = reflected(lambda: ops.mod)
    __pow__ = method(lambda: ops.pow)
    __rpow__ = reflected(lambda: ops.pow)
    __matmul__ = method(lambda: ops.matmul)
    __rmatmul__ = reflected(lambda: ops.matmul)
    __neg__ = method(lambda: ops.neg)
    __abs__ = method(lambda: ops.abs)
    __round__ = method(lambda: ops.round)
    __floor__ = method(lambda: ops.floor)
    __ceil__ = method(lambda: ops.ceil)

    # --- bits, and logic on booleans ---

    __and__ = method(lambda: ops.bitwise_and)
    __rand__ = reflected(lambda: ops.bitwise_and)
    __or__ = method(lambda: ops.bitwise_or)
    __ror__ = reflected(lambda: ops.bitwise_or)
    __xor__ = method(lambda: ops.bitwise_xor)
    __rxor__ = reflected(lambda: ops.bitwise_xor)
    __invert__ = method(lambda: ops.bitwise_not)
    __lshift__ = method(lambda: ops.shift_left)
    __rlshift__ = reflected(lambda: ops.shift_left)
    __rshift__ = method(lambda: ops.shift_right)
    __rrshift__ = reflected(lambda: ops.shift_right)

    # --- comparison, element by element ---

    _equal = method(lambda: ops.equal)
    _not_equal = method(lambda: ops.not_equal)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._equal(other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._not_equal(other)

    __gt__ = method(lambda: ops.greater)
    __ge__ = method(lambda: ops.greater_or_equal)
    __lt__ = method(lambda: ops.less)
    __le__ = method(lambda: ops.less_or_equal)
    __hash__ = object.__hash__

    # --- functions of each element ---

    abs = method(lambda: ops.abs)
    sign = method(lambda: ops.sign)
    sqrt = method(lambda: ops.sqrt)
    square = method(lambda: ops.square)
    reciprocal = method(lambda: ops.reciprocal)
    exp = method(lambda: ops.exp)
    expm1 = method(lambda: ops.expm1)
    log = method(lambda: ops.log)
    log1p = method(lambda: ops.log1p)
    floor = method(lambda: ops.floor)
    ceil = method(lambda: ops.ceil)
    round = method(lambda: ops.round)
    trunc = method(lambda: ops.trunc)
    clip = method(lambda: ops.clip)
    sin = method(lambda: ops.sin)
    cos = method(lambda: ops.cos)
    tan = method(lambda: ops.tan)
    sinh = method(lambda: ops.sinh)
    cosh = method(lambda: ops.cosh)
    tanh = method(lambda: ops.tanh)
    asin = method(lambda: ops.asin)
    acos = method(lambda: ops.acos)
    atan = method(lambda: ops.atan)
    asinh = method(lambda: ops.asinh)
    acosh = method(lambda: ops.acosh)
    atanh = method(lambda: ops.atanh)
    deg2rad = method(lambda: ops.deg2rad)
    rad2deg = method(lambda: ops.rad2deg)
    erf = method(lambda: ops.erf)
    relu = method(lambda: ops.relu)
    sigmoid = method(lambda: ops.sigmoid)
    is_nan = method(lambda: ops.is_nan)
    is_inf = method(lambda: ops.is_inf)
    is_finite = method(lambda: ops.is_finite)

    # --- functions of two tensors ---

    pow = method(lambda: ops.pow)
    maximum = method(lambda: ops.maximum)
    minimum = method(lambda: ops.minimum)
    hypot = method(lambda: ops.hypot)
    atan2 = method(lambda: ops.atan2)
    logical_and = method(lambda: ops.logical_and)
    logical_or = method(lambda: ops.logical_or)
    logical_xor = method(lambda: ops.logical_xor)
    logical_not = method(lambda: ops.logical_not)
    is_close = method(lambda: ops.is_close)

    fmod = method(lambda: ops.fmod)

    def all_close(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Whether |self - other| <= atol + rtol * |other| everywhere."""
        return ops.all_close(self, other, rtol, atol)

    def contains_nan(self) -> bool:
        """Whether any element is not a number."""
        return ops.contains_nan(self)
