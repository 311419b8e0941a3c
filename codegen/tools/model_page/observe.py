"""Run a model once and record the tensors that enter and leave each module."""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from burnish import Tensor, seed
from burnish._engine.pytree import leaves
from burnish.codegen.tools.flops import operator_macs
from burnish.nn.core.module import Module
from burnish.operator import Operator
from burnish.profiling.memory import Live
from burnish.profiling.watching import around

STEPS = 400
"""So many steps of one module are kept, the rest are counted."""

Kind = tuple[str, str, tuple[int, ...]]
"""Name, dtype and shape."""


@dataclass
class Seen:
    """Observed calls of one module: the flow of the first, the costs of all."""

    calls: int = 0
    inputs: tuple[Kind, ...] = ()
    outputs: tuple[Kind, ...] = ()
    macs: int = 0
    result_bytes: int = 0
    steps: list[tuple[str, str, tuple[Kind, ...]]] = field(default_factory=list)
    more_steps: int = 0


@dataclass
class Pass:
    """One pass: what each module did by path, each operator by name."""

    modules: dict[str, Seen] = field(default_factory=dict)
    operators: dict[str, tuple[int, int, int]] = field(default_factory=dict)


def observed(
    model: Any,
    inputs: Mapping[str, np.ndarray],
    products: bool = True,
    seconds: float = math.inf,
) -> Pass:
    """Call the model on the inputs.

    products: whether matrix products and convolutions are computed; else they give
    zeros of the right shape, which costs next to nothing and reads no weights. Raises
    TimeoutError before the first operator that begins after so many seconds.
    """
    made = Pass()
    watch = _Watch(model, made, products, monotonic() + seconds)
    given = {name: Tensor(each, device=model.device) for name, each in inputs.items()}
    seed(0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of random inputs
        stack.enter_context(around(Module, "__call__", watch.module))
        stack.enter_context(around(Operator, "_compute", watch.operator))
        model(**given)
    return made


class _Watch:
    """Hears of every call of modules and operators."""

    def __init__(self, model: Any, made: Pass, products: bool, until: float):
        self.made, self.products, self.live = made, products, Live()
        self.until = until
        self.paths = {id(each): path for path, each in model.named_modules()}
        self.open: list[Seen] = []
        self.inside = False

    def module(self, call: Any, module: Any, args: Any) -> Any:
        path = self.paths.get(id(module), type(module).__name__)
        seen = self.made.modules.setdefault(path, Seen())
        if self.open:
            _step(self.open[-1], "", path, ())
        seen.calls += 1
        self.open.append(seen)
        try:
            results = call()
        finally:
            self.open.pop()
        if seen.calls == 1:
            seen.inputs = _named(module, args, call.keywords)
            seen.outputs = _kinds(results)
        return results

    def operator(self, call: Any, operator: Any, args: Any) -> Any:
        if self.inside or not self.open:  # what an operator calls is its own affair
            return call()
        if monotonic() > self.until:
            raise TimeoutError("one pass takes too long")
        given, options = args
        for array in leaves(given):
            if hasattr(array, "nbytes"):
                self.live.known(array)
        self.inside = True
        try:
            quick = None if self.products else _zeros(operator, given, options)
            results = call() if quick is None else quick
        finally:
            self.inside = False
        self._count(operator.__name__, given, options, results)
        return results

    def _count(self, name: str, given: Any, options: Any, results: Any) -> None:
        seen = self.open[-1]
        arrays = [y for y in leaves(results) if hasattr(y, "nbytes")]
        made = sum(map(self.live.made, arrays))
        macs = operator_macs(name, given, options, results)
        seen.macs += macs
        seen.result_bytes += made
        calls, all_macs, all_bytes = self.made.operators.get(name, (0, 0, 0))
        self.made.operators[name] = calls + 1, all_macs + macs, all_bytes + made
        _step(seen, name, "", _kinds(results))


def _step(seen: Seen, operator: str, module: str, kinds: tuple[Kind, ...]) -> None:
    if seen.calls > 1:
        return
    if len(seen.steps) < STEPS or module:
        seen.steps.append((operator, module, kinds))
    else:
        seen.more_steps += 1


def _kinds(value: Any) -> tuple[Kind, ...]:
    return tuple(_kind("", each) for each in leaves(value) if _is_array(each))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _kind(name: str, array: Any) -> Kind:
    return name, str(array.dtype), tuple(map(int, array.shape))


def _named(module: Any, args: Any, options: Any) -> tuple[Kind, ...]:
    """The arrays that a module was called with, by the names of its parameters."""
    given: list[tuple[str, Any]]
    try:
        bound = inspect.signature(module.forward).bind(*args, **options)
        given = list(bound.arguments.items())
    except (TypeError, ValueError):
        given = [("", each) for each in args]
    return tuple(
        _kind(name, each)
        for name, value in given
        for each in leaves(value)
        if _is_array(each)
    )


# --- shapes without products ---


def _zeros(operator: Any, given: Any, options: Any) -> np.ndarray | None:
    """Zeros in the shape of a product; None where it has to be computed."""
    shape_of = _SHAPES.get(operator.__name__)
    if shape_of is None or not all(hasattr(a, "shape") for a in given[:2]):
        return None
    shape = shape_of(operator, given, options)
    if shape is None or math.prod(shape) == 0:
        return None
    first, second = given[:2]
    ids = operator.__name__ == "embedding"
    return np.zeros(shape, second.dtype if ids else np.result_type(first, second))


def _linear(_: Any, given: Any, options: Any) -> tuple[int, ...] | None:
    x, weight = given[:2]
    fits = x.shape[-1:] == weight.shape[1:]
    return (*x.shape[:-1], weight.shape[0]) if fits else None


def _matmul(_: Any, given: Any, options: Any) -> tuple[int, ...] | None:
    a, b = given[:2]
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        return None
    outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (*outer, a.shape[-2], b.shape[-1])


def _conv(operator: Any, given: Any, options: Any) -> tuple[int, ...] | None:
    """The shape of one channel's correlation, for all of them."""
    x, weight = given[:2]
    groups = options.get("groups", 1)
    if x.ndim < 3 or x.shape[1] != weight.shape[1] * groups:
        return None
    one = operator.value(x[:, :1], weight[:1, :1], **{**options, "groups": 1})
    return (x.shape[0], weight.shape[0], *one.shape[2:])


def _embedding(_: Any, given: Any, options: Any) -> tuple[int, ...]:
    ids, weight = given[:2]
    return (*ids.shape, *weight.shape[1:])


_SHAPES: dict[str, Callable[[Any, Any, Any], tuple[int, ...] | None]] = {
    "embedding": _embedding,
    "linear": _linear,
    "matmul": _matmul,
    "conv": _conv,
}
