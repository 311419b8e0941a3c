"""Summed: a sum that is computed together with the norm of its rows.

In a step in half precision a sum is computed when somebody asks for it. A layer or RMS
norm does: one launch then writes the sum, the norm's result, and a copy of it in half
precision for products. Its gradient adds the gradients of what read the result and the
copy, each product's by itself, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend.cuda.norms.residual import add_norm, fits
from burnish.backend.cuda.norms.residual_gradient import norm_gradient
from burnish.nn.core.param import Stored
from burnish.operator import Operator
from burnish.ops._shapes import cast
from burnish.ops.elementwise.arithmetic import add
from burnish.ops.normalization import layer_norm_from, rms_norm_from
from burnish.plan.cuda.stepping.deferred import Deferred

_SINGLE = np.dtype(np.float32)
_NORMS: frozenset[Any] = frozenset((layer_norm_from, rms_norm_from))

COPIES = 3
"""References to the copy in half precision, whose gradients stay apart."""


def _row_norm(
    x: Any, z: Any, weight: Any, bias: Any, *, eps: float, center: bool, half: Any
) -> Any:
    """(x + z, its rows' norm, the norm as `half`, thrice); None for no kernel."""
    kept = None if z is None else _SINGLE
    made = add_norm(
        x, z, weight, bias, eps, center=center, dtype=_SINGLE, kept=kept, half=half
    )
    if made is None:
        return (None,) * (2 + COPIES)
    total, y, rounded = made
    return (x if z is None else total, y, *(rounded,) * COPIES)


row_norm: Operator[..., Any, Any] = Operator(_row_norm)
row_norm.takes_bfloat16.add("cupy")


def _by_kernels(
    g: Any,
    y: Any,
    x: Any,
    z: Any,
    weight: Any,
    bias: Any,
    *,
    eps: float,
    center: bool,
    half: Any,
) -> Any:
    halves = [part for part in g[2:] if part is not None]
    if g[1] is None and not halves:
        return _like(g[0], x), _like(g[0], z), None, None
    kinds = [a.dtype for a in (x, z) if a is not None]
    parts = norm_gradient(
        g[1],
        halves,
        g[0],
        y[0],
        weight,
        eps,
        center=center,
        half=half,
        rounds=half in kinds,
    )
    if parts is None:
        return NotImplemented
    by_dtype = {_SINGLE: parts[0], half: parts[1]}
    own = [None if a is None else by_dtype[a.dtype] for a in (x, z)]
    given = zip((weight, bias), parts[2:], strict=True)
    return (*own, *(None if a is None else part for a, part in given))


def _by_operators(
    g: Any,
    y: Any,
    x: Any,
    z: Any,
    weight: Any,
    bias: Any,
    *,
    eps: float,
    center: bool,
    half: Any,
) -> Any:
    slope: Any = None
    for part in g[1:]:
        if part is not None:
            wide = cast(part, dtype=_SINGLE)
            slope = wide if slope is None else add(slope, wide)
    if slope is None:
        return _like(g[0], x), _like(g[0], z), None, None
    total = x if z is None else add(cast(x, dtype=_SINGLE), cast(z, dtype=_SINGLE))
    op = layer_norm_from if center else rms_norm_from
    given = (total, weight, bias) if center else (total, weight)
    parts = op.rules["x"][0](slope, y[1], *given, axis=-1, eps=eps)
    own = parts[0] if g[0] is None else add(parts[0], g[0])
    return _like(own, x), _like(own, z), parts[1], parts[2] if center else None


def _like(part: Any, item: Any) -> Any:
    return None if item is None else cast(part, dtype=item.dtype)


_ARGUMENTS = ("x", "z", "weight", "bias")
row_norm.vjp(*_ARGUMENTS, on="cupy", takes_bfloat16=True)(_by_kernels)
row_norm.vjp(*_ARGUMENTS)(_by_operators)


class Summed(Deferred):
    """The sum of two tensors of one shape, which is computed when it is asked for.

    away: gives a context in which no calls are looked at.
    """

    __slots__ = ("_away", "_made", "parts")

    def __init__(self, parts: tuple[Variable, Variable], away: Callable[[], Any]):
        self.parts, self._away = parts, away
        self._made: Variable | None = None

    def whole(self) -> Variable:
        """The sum as a plain tensor."""
        if self._made is None:
            with self._away():
                self.settle(add(*self.parts))
        made: Variable | None = self._made
        assert made is not None
        return made

    def settle(self, made: Variable) -> None:
        """The sum was computed; its parts may go."""
        self._made, self.parts = made, (made, made)

    @property
    def is_made(self) -> bool:
        """Whether the sum was computed."""
        return self._made is not None

    @property
    def operand(self) -> Variable:
        return self.parts[0]

    @property
    def dtype(self) -> Any:
        return _SINGLE


def summed(
    function: Any, args: tuple[Any, ...], half: Any, away: Callable[[], Any]
) -> Summed | None:
    """A sum in float32 that a norm may join; None for any other call."""
    if function is not add or len(args) != 2:
        return None
    a, b = args
    if not (isinstance(a, Variable) and isinstance(b, Variable)) or a is b:
        return None
    is_rows = len(a.shape) > 1 and a.shape == b.shape and fits(a.shape[-1])
    kinds = {a.dtype, b.dtype}
    if not is_rows or not kinds <= {_SINGLE, half} or _SINGLE not in kinds:
        return None
    if a.device is not b.device or any(isinstance(each, Stored) for each in (a, b)):
        return None  # a parameter may have another value when the sum is asked for
    plain = [each.whole() if type(each) is Summed else each for each in (a, b)]
    return Summed((plain[0], plain[1]), away)


def row_normalized(
    function: Any, args: tuple[Any, ...], options: dict[str, Any], half: Any
) -> tuple[Variable, list[Variable]] | None:
    """A norm's result and its copies in half precision; None for no kernel."""
    if function not in _NORMS or not args or not options.keys() <= {"axis", "eps"}:
        return None
    x, *given = args
    if not isinstance(x, Variable) or len(x.shape) < 2 or x.dtype != _SINGLE:
        return None
    axis, eps = options.get("axis", -1), options.get("eps", 1e-5)
    weight, bias, *_ = (*given, None, None)
    if axis not in (-1, len(x.shape) - 1) or not fits(x.shape[-1]):
        return None
    for item in (weight, bias):
        if item is not None and not isinstance(item, Variable):
            return None
        if item is not None and (item.shape, item.dtype) != (x.shape[-1:], _SINGLE):
            return None
    is_joined = type(x) is Summed and not x.is_made
    pair = x.parts if type(x) is Summed and is_joined else (x, None)
    center = function is layer_norm_from
    made = row_norm(*pair, weight, bias, eps=eps, center=center, half=half)
    total, y, *copies = made
    if y.data is None:
        return None
    if type(x) is Summed and is_joined:
        x.settle(total)
    return y, copies
