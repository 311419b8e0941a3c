"""Vector-Jacobian products: an operator's gradient rules, and how they are called.

The forms of a rule are in the docstring of `burnish.operator`. What a gradient is
computed by is decided here: what was prepared for CuPy's arrays, a kernel of the
backend, or the rule that is written with operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import bfloat16, namespace
from burnish.backend.cuda.calls import called
from burnish.errors import GradientError

F = TypeVar("F", bound=Callable[..., Any])

Rule: TypeAlias = tuple[Callable[..., Any], tuple[str, ...]]
"""A gradient rule, and the arguments that it is for."""


class Rules:
    """The gradient rules of a function of arrays and options.

    arguments: the names of its arrays; what `*arrays` takes has rules for "*".
    """

    name: str
    arguments: list[str]
    variadic: bool
    defaults: dict[str, Any]

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.rules_on: dict[str, dict[str, Rule]] = {}
        self.bfloat16_rules: set[str] = set()
        self.prepare_vjp: Callable[..., Callable[..., Any] | None] | None = None

    def vjp(
        self, *names: Any, on: str | None = None, takes_bfloat16: bool = False
    ) -> Any:
        """Register a gradient rule; `burnish.operator` has its forms.

        takes_bfloat16: whether the rule for a GPU computes bfloat16 in float32 and
        rounds once.
        """
        rules = self.rules if on is None else self.rules_on.setdefault(on, {})
        if len(names) == 1 and callable(names[0]):
            target = "*" if self.variadic and not self.arguments else self.arguments[0]
            rules[target] = (names[0], (target,))
            return names[0]

        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            for name in names:
                if name not in self.arguments:
                    raise TypeError(f"{self.name} has no argument {name!r}")
                if name in rules and is_late(rule):
                    continue
                rules[name] = (rule, names)
                if takes_bfloat16:
                    self.bfloat16_rules.add(name)
            return rule

        return register

    def prepared_vjp(self, prepare: F) -> F:
        """Register what decides once how gradients of CuPy's arrays alike are computed.

        prepare(g, y, *args, needed, **options) returns a function of the arrays, or
        None; it gives a list with the gradient of each argument, None where it is not
        needed, or None where the rules have to do it. needed: a bool for each argument.
        A value of several arrays comes as (*g, *y, *args).
        """
        self.prepare_vjp = prepare
        return prepare

    def pull(
        self,
        g: Any,
        y: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        needed: list[bool],
    ) -> list[Any]:
        """The gradient of each argument, None where it is not needed."""
        if self.prepare_vjp is not None and "cupy" not in self.rules_on:
            ends = (*g, *y) if isinstance(y, tuple) else (g, y)
            if type(ends[0]) is not np.ndarray:
                given = {"needed": tuple(needed), **self.defaults, **options}
                found = called(self.prepare_vjp, (*ends, *args), given)
                if found is not None:
                    return found
        options = {**self.defaults, **options}
        if bfloat16.possible() and bfloat16.is_among(args):
            parts = self._parts(g, y, args, options, needed, True)
            return list(map(bfloat16.like, parts, args))
        return self._parts(g, y, args, options, needed, False)

    def _parts(
        self,
        g: Any,
        y: Any,
        args: tuple[Any, ...],
        options: dict[str, Any],
        needed: list[bool],
        widens: bool,
    ) -> list[Any]:
        """`pull`; widens: rules that do not take bfloat16 are given float32."""
        named = len(self.arguments)
        parts: list[Any] = [None] * len(args)
        done: set[int] = set()
        kernels = self._kernels_of(g) if self.rules_on else {}
        held = g, y, args
        wide: Any = None if widens else held  # casts cost: made for a rule that asks
        for i, need in enumerate(needed):
            if not need or i in done:
                continue
            name = self.arguments[i] if i < named else "*"
            result = NotImplemented
            if name in kernels:
                rule, names = kernels[name]
                takes = name in self.bfloat16_rules
                wide = bfloat16.widened(held) if wide is None and not takes else wide
                g, y, args = held if takes else wide
                result = rule(g, y, *args, **options)
            if result is NotImplemented:
                rule, names = self._rule(name)
                wide = bfloat16.widened(held) if wide is None else wide
                g, y, args = wide
                result = rule(g, y, *args, **options)
            if name == "*":
                parts[named:] = result
                done.update(range(named, len(args)))
            elif len(names) == 1:
                parts[i] = result
            else:
                for other, part in zip(names, result, strict=True):
                    place = self.arguments.index(other)
                    if place < len(parts):
                        parts[place] = part
                        done.add(place)
        return parts

    def _kernels_of(self, g: Any) -> dict[str, Rule]:
        """The rules for the backend that a gradient is on, if it is of plain arrays."""
        parts = g if isinstance(g, tuple) else (g,)
        for part in parts:
            if isinstance(part, Variable):
                return {}
        return self.rules_on.get(namespace(*parts).__name__, {})

    def _rule(self, name: str) -> Rule:
        try:
            return self.rules[name]
        except KeyError:
            raise GradientError(
                f"{self.name}: no gradient with respect to {name!r} exists; "
                f"detach() the tensor before this operator"
            ) from None


def is_late(kernel: Callable[..., Any]) -> bool:
    """Whether Burnish registers a kernel once it is needed: one that stands stays."""
    return kernel.__module__.startswith(("burnish.ops._cpu", "burnish.ops._gpu"))
