"""Expressions that rules return: calls, layers, operands, known values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from burnish import nn, ops
from burnish.codegen.program import (
    BinOp,
    Call,
    Constant,
    Expression,
    Host,
    Layer,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Value,
    Weight,
)


@dataclass(frozen=True, eq=False)
class Inline(Expression):
    """A rule's result that is written where it is used, without a name of its own."""

    expression: Expression


DEVICE = Name("self.device")
_STATISTICS = ("running_", "num_batches")


class UnfitError(ValueError):
    """An input that no run of the node could take."""


def call(operator: str, *args: Any, **options: Any) -> Call:
    """A call of `burnish.ops`; options equal to its defaults are left out."""
    target = getattr(ops, operator)
    while args and args[-1] is None:
        args = args[:-1]
    return Call(f"ops.{operator}", operands(*args), worth_writing(target, options))


def function(target: Callable[..., Any], *args: Any, **options: Any) -> Call:
    """A call of a function of one's own, by the module that it is imported from."""
    while args and args[-1] is None:
        args = args[:-1]
    name = f"{target.__module__}.{target.__name__}"
    return Call(name, operands(*args), worth_writing(target, options))


def method(target: Expression, name: str, *args: Any, **options: Any) -> Method:
    """`target.name(*args, **options)` on a tensor."""
    written = tuple((key, operand(value)) for key, value in options.items())
    return Method(tensor(target), name, tuple(map(operand, args)), written)


def layer(
    kind: str,
    args: Sequence[Any],
    options: dict[str, Any],
    weights: dict[str, Weight],
    *inputs: Expression,
) -> Layer:
    """A layer of `burnish.nn`; options equal to its defaults are left out.

    Its floating-point weights train, also where the file has them as constants.
    """
    target = getattr(nn, kind).__init__
    weights = {
        name: replace(weight, trained="float" in weight.dtype)
        if not name.startswith(_STATISTICS)
        else weight
        for name, weight in weights.items()
    }
    if weights and "dtype" in inspect.signature(target).parameters:
        options = {**options, "dtype": next(iter(weights.values())).dtype}
    kept = {
        name: value.value
        for name, value in worth_writing(target, options)
        if isinstance(value, Literal)
    }
    return Layer(kind, tuple(args), kept, weights, tuple(map(operand, inputs)))


def worth_writing(
    target: Callable[..., Any], options: dict[str, Any]
) -> tuple[tuple[str, Expression], ...]:
    """The options that differ from the target's own defaults; flags are booleans."""
    parameters = inspect.signature(target).parameters
    written = []
    for name, value in options.items():
        default = parameters[name].default
        if isinstance(default, bool) and isinstance(value, int):
            value = bool(value)
        plain = value.value if isinstance(value, Literal) else value
        if isinstance(plain, Expression) or plain != default:
            written.append((name, operand(value)))
    return tuple(written)


def operand(value: Any) -> Expression:
    """A Python value as an expression; constants as people write them."""
    if isinstance(value, Constant):
        return constant_operand(value)
    if isinstance(value, Host):
        return host_operand(value)
    if isinstance(value, Expression):
        return value
    if isinstance(value, list | tuple) and any(
        isinstance(item, Expression) for item in value
    ):
        brackets = "[]" if isinstance(value, list) else "()"
        return ListOrTuple(tuple(map(operand, value)), brackets)
    return Literal(value)


def operands(*values: Any) -> tuple[Expression, ...]:
    """Each value as an expression, at least one of them a tensor.

    Where the first is a plain number, all are numbers to the function.
    """
    first = next((v for v in values if v is not None), None)
    if not isinstance(first, Expression) or any(map(_is_tensor, values)):
        return tuple(map(operand, values))
    return tuple(tensor(v) if v is first else operand(v) for v in values)


def infix(operator: str, a: Expression, b: Expression) -> BinOp:
    """`a operator b`, one of them a tensor."""
    if operator == "@":  # it takes no numbers
        return BinOp(operator, operand(a), operand(b))
    return BinOp(operator, *operands(*bare(a, b)))


def bare(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Two operands, [0.5] as the number where it changes no shape."""
    return _bare(a, b), _bare(b, a)


def _bare(value: Expression, other: Expression) -> Expression:
    if not isinstance(value, Constant) or value.array.size != 1:
        return value
    beside = isinstance(other, Value) and not other.host
    if beside and 0 < value.array.ndim <= (other.rank or 0):
        return Constant(value.array.reshape(()))
    return value


def tensor(value: Expression, dtype: str | None = None) -> Expression:
    """A value where only a tensor will do: numbers become one."""
    made = operand(value)
    if _is_tensor(value):
        return made
    options = (("dtype", Literal(dtype or value.dtype)), ("device", DEVICE))
    return Call("Tensor", (made,), options)


def whole(result: Expression) -> Expression:
    """A result of a graph or body; numbers become tensors, None stays None."""
    if isinstance(result, Literal) and result.value is None:
        return result
    return tensor(result)


def _is_tensor(value: Any) -> bool:
    if isinstance(value, Constant | Host):
        return value.array.ndim > 0
    if isinstance(value, Value):
        return not value.host
    return isinstance(value, Expression) and not isinstance(value, Literal | Name)


def constant_operand(value: Constant) -> Expression:
    """A known array where a tensor is expected: a number, or a buffer."""
    if value.array.ndim == 0:
        return Literal(plain(value.array))
    array = value.array
    if array.dtype.kind == "O":
        options = (("dtype", Literal("object")), ("device", DEVICE))
        return Call("Tensor", (Literal(array.tolist()),), options)
    persistent = array.dtype.kind not in "bif"  # packed ones are weights
    return replace(buffer(array), persistent=persistent)


def buffer(array: np.ndarray, path: str = "") -> Weight:
    """A known array as a tensor of a layer that does not train."""
    return Weight(path, array.dtype.name, array.shape, lambda: array, trained=False)


def host_operand(value: Host) -> Expression:
    """Numbers of the host where a tensor is expected: a number, or a new tensor."""
    if value.array.ndim == 0:
        return value.array.item()
    dtype = Literal(value.dtype)
    options = (("dtype", dtype), ("device", DEVICE))
    return Call("Tensor", (nested(value.array),), options)


def nested(array: np.ndarray) -> Expression:
    """An object array as nested list displays."""
    if array.ndim == 0:
        return array.item()
    return ListOrTuple(tuple(nested(np.asarray(row, object)) for row in array))


def plain(array: np.ndarray) -> Any:
    """A known array as Python numbers, floats as short as their type allows."""
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        flat = [float(str(number)) for number in array.ravel()]
        return np.asarray(flat, float).reshape(array.shape).tolist()
    return array.tolist()


def known(value: Expression | None) -> np.ndarray | None:
    """The array of an input that is known while generating, else None."""
    if isinstance(value, Constant | Weight):
        return value.array
    if isinstance(value, Literal) and value.value is not None:
        return np.asarray(value.value)
    if isinstance(value, Host):
        items = list(value.array.ravel())
        if all(isinstance(item, Literal) for item in items):
            flat = [item.value for item in items]
            return np.asarray(flat, value.dtype).reshape(value.array.shape)
    return None


def ints(value: Expression) -> list[Any] | Expression:
    """A rank-1 integer input as a list of numbers and expressions.

    When its length is not known while generating, one expression for the whole list.
    """
    array = known(value)
    if array is not None:
        return array.reshape(-1).tolist()
    if isinstance(value, Host):
        return [
            item.value if isinstance(item, Literal) else item
            for item in value.array.ravel()
        ]
    return Method(value, "tolist")


def number(value: Expression) -> Any:
    """A one-element input as a Python number, or an expression for it."""
    array = known(value)
    if array is not None:
        return plain(_one(array))
    if isinstance(value, Host):
        return _one(value.array).item()
    if isinstance(value, Value) and value.host:
        return value
    return Method(value, "item")


def _one(array: np.ndarray) -> np.ndarray:
    if array.size != 1:
        raise UnfitError(f"expected an input of one value, got {array.size}")
    return array.reshape(())


def paired(*lists: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Items of lists side by side. Raises UnfitError where one is longer."""
    lengths = [len(each) for each in lists]
    if len(set(lengths)) > 1:
        raise UnfitError(f"expected lists of one length, got {lengths}")
    return list(zip(*lists, strict=True))


def owned(*weights: Expression | None) -> bool:
    """Whether these inputs are parameters that a layer may own (None is fine)."""
    return all(w is None or (isinstance(w, Weight) and _ownable(w)) for w in weights)


def _ownable(weight: Weight) -> bool:
    return weight.trained and not (weight.source and weight.source.apart)
