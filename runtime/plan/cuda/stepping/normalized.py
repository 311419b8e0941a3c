"""Normalized: batch norm's result, computed together with a sum and a ReLU behind it.

A module's batch norm takes its statistics at once, its result when somebody asks. A sum
and a ReLU of nothing else join it: one launch writes what three would, and the gradient
reads what three would have kept. What two calls read has two gradients, which are added
where they are read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend.cuda.norms import channels
from burnish.operator import Operator
from burnish.ops.activation.piecewise import relu
from burnish.ops.elementwise.arithmetic import add
from burnish.ops.normalization import channel_norm
from burnish.plan.cuda.stepping.deferred import Deferred
from burnish.tensor import Tensor


def _normalized(
    x: Any, factors: Any, weight: Any, bias: Any, beside: Any, *, eps: float, act: bool
) -> Any:
    """(x - center) * factor + shift + beside, at least 0 with `act`.

    With both it is given twice: a next block reads it as an operand and as a residual,
    and the gradient's kernel reads the gradients of both instead of their sum.
    """
    y = channels.applied(x, factors, beside, act)
    return (y, y) if act and beside is not None else y


normalized: Operator[..., Any, Any] = Operator(_normalized)
normalized.takes_bfloat16.add("cupy")


def _by_kernels(
    g: Any,
    y: Any,
    x: Any,
    factors: Any,
    weight: Any,
    bias: Any,
    beside: Any,
    *,
    eps: float,
    act: bool,
) -> Any:
    g, more, y = _parts_of(g, y)
    is_summed = beside is not None
    parts = channels.applied_gradient(g, y, x, factors, weight, is_summed, act, more)
    if parts is None:
        return NotImplemented
    given = (x, weight, bias, beside)
    return tuple(
        None if a is None else part for a, part in zip(given, parts, strict=True)
    )


def _by_operators(
    g: Any,
    y: Any,
    x: Any,
    factors: Any,
    weight: Any,
    bias: Any,
    beside: Any,
    *,
    eps: float,
    act: bool,
) -> Any:
    made = channel_norm(x, weight, bias, eps=eps)
    g, more, _ = _parts_of(g, y)
    g = g if more is None else add(g, more)
    if act:
        value = made[0] if beside is None else add(made[0], beside)
        g = _rule(relu)(g, relu(value), value)
    rule, _ = channel_norm.rules["x"]
    parts = rule((g, None, None), made, x, weight, bias, eps=eps)
    return (*parts, None if beside is None else g)


def _parts_of(g: Any, y: Any) -> tuple[Any, Any, Any]:
    """A gradient, another one that is added to it or None, and the result."""
    if not isinstance(y, tuple):
        return g, None, y
    one, *others = [part for part in g if part is not None]
    more = others[0] if others else None
    if more is not None and more.dtype != one.dtype:
        one, more = add(one, more), None
    return one, more, y[0]


_ARGUMENTS = ("x", "weight", "bias", "beside")
normalized.vjp(*_ARGUMENTS, on="cupy", takes_bfloat16=True)(_by_kernels)
normalized.vjp(*_ARGUMENTS)(_by_operators)


def _rule(op: Any) -> Callable[..., Any]:
    rule: Callable[..., Any] = op.rules["x"][0]
    return rule


class Normalized(Deferred):
    """Batch norm's result, which is computed when it is asked for.

    away: gives a context in which no calls are looked at.
    """

    __slots__ = ("_away", "_beside", "_given", "_made", "_options", "_statistics")

    def __init__(
        self,
        given: tuple[Any, Any, Any],
        statistics: Any,
        eps: float,
        away: Callable[[], Any],
        beside: Variable | None = None,
    ):
        self._given, self._statistics, self._away = given, statistics, away
        self._beside = beside
        self._options: dict[str, Any] = {"eps": eps, "act": False}
        self._made: tuple[Variable, ...] = ()

    def joined(self, function: Any, args: tuple[Any, ...]) -> tuple[Variable, ...]:
        """The result of an operator that is computed with it; () for any other.

        It is there twice where two calls may read it.
        """
        if self._options["act"] or self._made:
            return ()
        if function is relu:
            return self._with(self._beside, True)._results()
        if function is not add or self._beside is not None:
            return ()
        a, b = args
        other = b if a is self else a
        fits = isinstance(other, Variable) and other is not self
        if not fits or other.shape != self.shape or other.dtype != self.dtype:
            return ()
        return (self._with(other, False),)

    def _with(self, beside: Variable | None, act: bool) -> Normalized:
        eps = self._options["eps"]
        made = Normalized(self._given, self._statistics, eps, self._away, beside)
        made._options["act"] = act
        return made

    def whole(self) -> Variable:
        """The result as a plain tensor."""
        return self._results()[0]

    def _results(self) -> tuple[Variable, ...]:
        if not self._made:
            x, weight, bias = self._given
            with self._away():
                given = x, self._statistics, weight, bias, self._beside
                made = normalized(*given, **self._options)
            self._made = made if isinstance(made, tuple) else (made,)
        return self._made

    @property
    def operand(self) -> Variable:
        operand: Variable = self._given[0]
        return operand

    @property
    def dtype(self) -> Any:
        return self._given[0].dtype


class Twins:
    """Values that are there twice: the first call that reads one is given the other."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], Variable]] = {}

    def keep(self, value: Variable, twin: Variable) -> None:
        """Have a twin as long as there is the value, or until it was given."""
        held, key = self._held, id(value)
        held[key] = weakref.ref(value, lambda _: held.pop(key, None)), twin

    def given(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """A call's arguments, twins where there are some."""
        return tuple(map(self._given, args)) if self._held else args

    def _given(self, item: Any) -> Any:
        kept, twin = self._held.get(id(item), (None, None))
        if kept is None or kept() is not item:
            return item
        del self._held[id(item)]
        return twin


def normalization(
    away: Callable[[], Any],
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
) -> tuple[Any, Any, Any] | None:
    """(result, mean, variance) of a batch; None where there are no kernels for it."""
    held = isinstance(x, Variable)
    if not held or not all(isinstance(a, Variable | None) for a in (weight, bias)):
        return None
    given = x.resolve(), *(a if a is None else a.resolve() for a in (weight, bias))
    own = [a if a is None else a.data for a in given[1:]]
    single = np.dtype(np.float32)
    found = channels.statistics(given[0].data, own[0], own[1], eps, single)
    if found is None:
        return None
    device = x.device
    factors, mean, var = (Tensor.wrap(array, device) for array in found)
    return Normalized((given[0], given[1], given[2]), factors, eps, away), mean, var
