"""Slots: each integer of a class, in constructors and as a size in its forward."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any

from burnish import nn
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    Keyed,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    ModuleCall,
    Name,
    Repeat,
    Slice,
    Subscript,
    UnaryOp,
    every_expression,
)

Parameters = Mapping[str, list[str]]
"""The constructor's arguments of each class of the source."""

Defaults = Mapping[str, Mapping[str, object]]
"""Defaults of the arguments of generated classes, by class and argument."""

_SIZED = frozenset(("reshape", "expand", "repeat", "split"))
_FILLED = frozenset(("Tensor.zeros", "Tensor.full"))
_OPTIONS = frozenset(
    ("shape", "sizes", "split_sizes", "num_heads", "repeats", "stride", "pad_width")
)
_WORDS = {"pad_width": "padding"}
ATTENTION = "ops.scaled_dot_product_attention"
_CAUSAL = "is_causal"
_SUMS = frozenset(("+", "-", "*", "//", "%"))


@dataclass(frozen=True)
class Slot:
    """A place of a size: its attribute, and the callee's name for it.

    place: of several under one name, such as a shape's. attribute "": in the forward.
    default: the callee's default. call: which of the forward's reshapes, and
    rank: to how many axes. callee: whose constructor it is.
    """

    attribute: str
    parameter: str
    place: int = 0
    default: object = None
    call: int = 0
    rank: int = 0
    callee: str = ""


Change = Callable[[Slot, Any], Expression]


def slots_of(
    plan: ClassPlan, parameters: Parameters, defaults: Defaults | None = None
) -> list[tuple[Slot, Any]]:
    """Every size of the class with its place, in a fixed order.

    defaults: of the source's own classes; where given, whatever they are called with is
    such a size, a switch and a function too.
    """
    seen: list[tuple[Slot, Any]] = []

    def record(slot: Slot, size: Any) -> Expression:
        seen.append((slot, size))
        return as_expression(size)

    changed(plan, parameters, record, defaults)
    return seen


def as_expression(value: Any) -> Expression:
    """A size, a switch or the name of a function, as it is written."""
    return Name(value) if isinstance(value, str) else Literal(value)


def changed(
    plan: ClassPlan,
    parameters: Parameters,
    change: Change,
    defaults: Defaults | None = None,
) -> ClassPlan:
    """The class with every size changed, in the order of `slots_of`."""

    def member(made: Expression, name: str) -> Expression:
        if isinstance(made, Method) and not name:  # super().__init__(...)
            called = Call(plan.base, made.args, made.options)
            found = constructor(called, "super", parameters, change, defaults)
            assert isinstance(found, Call)
            return replace(made, args=found.args, options=found.options)
        return constructor(made, name, parameters, change, defaults)

    members = [(name, member(made, name)) for name, made in plan.members]
    block = forward(plan.block, change, switched=defaults is not None)
    return replace(plan, members=members, block=block)


# --- constructors ---


def constructor(
    made: Expression,
    attribute: str,
    parameters: Parameters,
    change: Change,
    defaults: Defaults | None = None,
) -> Expression:
    """A constructor with its sizes changed; what then equals a default is left out."""

    def inner(part: Expression) -> Expression:
        return constructor(part, attribute, parameters, change, defaults)

    if isinstance(made, Keyed):
        parts = (
            (k, constructor(v, k, parameters, change, defaults)) for k, v in made.items
        )
        return Keyed(tuple(parts))
    optional = isinstance(made, UnaryOp) and isinstance(made.operand, Conditional)
    if optional or isinstance(made, Conditional | ListOrTuple | Method):
        return made.rebuilt(inner)
    if isinstance(made, Repeat):
        size = made.count
        if isinstance(size, Literal) and not made.fixed:
            size = change(Slot(attribute, "depth"), size.value)
        return replace(made, item=inner(made.item), count=size)
    if not isinstance(made, Call):
        return made
    names, usual = _arguments(made.function, parameters, defaults or {})
    is_open = defaults is not None and made.function in parameters

    def slot_of(name: str) -> Slot:
        usually = usual.get(name)
        return Slot(attribute, name, default=usually, callee=made.function)

    def argument(value: Expression, name: str) -> Expression:
        if isinstance(value, Name) and is_open:
            return change(slot_of(name), value.text)
        if isinstance(value, Literal):
            if type(value.value) is int or is_open:
                return change(slot_of(name), value.value)
            if made.function in ("nn.Param", "nn.Buffer"):
                return _shape(value, attribute, made.function, change)
            return value
        if isinstance(value, BinOp):  # what grows from part to part
            first, step = argument(value.left, name), argument(value.right, "growth")
            return replace(value, left=first, right=step)
        return inner(value)

    given = [
        argument(value, names[i] if i < len(names) else "size")
        for i, value in enumerate(made.args)
    ]
    written = dict(made.options)
    options = []
    for name in dict.fromkeys((*names[len(given) :], *written)):
        if name in written:
            options.append((name, argument(written[name], name)))
        elif name in usual:
            value = change(slot_of(name), usual[name])
            if not isinstance(value, Literal) or value.value != usual[name]:
                options.append((name, value))
    return replace(made, args=tuple(given), options=tuple(options))


def _shape(value: Literal, attribute: str, callee: str, change: Change) -> Expression:
    """A shape with its sizes changed; one of ones and numbers stays a literal."""
    if not isinstance(value.value, tuple) or not value.value:
        return value
    items = [
        Literal(1)
        if size == 1
        else change(Slot(attribute, "size", place, callee=callee), size)
        for place, size in enumerate(value.value)
    ]
    if all(isinstance(item, Literal) for item in items):
        return Literal(tuple(item.value for item in items if isinstance(item, Literal)))
    return ListOrTuple(tuple(items), "()")


def _arguments(
    function: str, parameters: Parameters, defaults: Defaults
) -> tuple[list[str], Mapping[str, object]]:
    """The names of a constructor's arguments, and their defaults that are sizes."""
    if function in parameters:
        return parameters[function], defaults.get(function, {})
    return _layer_arguments(function)


@cache
def _layer_arguments(function: str) -> tuple[list[str], Mapping[str, int]]:
    kind = getattr(nn, function.removeprefix("nn."), None)
    if not inspect.isclass(kind):
        return [], {}
    found = inspect.signature(kind).parameters
    own = {n: p.default for n, p in found.items() if type(p.default) is int}
    return list(found), own


# --- forward ---


def forward(block: Block, change: Change, switched: bool = False) -> Block:
    """The block with its sizes changed: what reshapes and slices are written with.

    switched: whether an attention is causal, too.
    """

    calls = count(1)

    def size(
        value: Expression, name: str, place: int, call: int = 0, rank: int = 0
    ) -> Expression:
        if isinstance(value, Literal) and type(value.value) is int:
            if value.value in (-1, 0) or (value.value == 1 and not rank):
                return value
            return change(Slot("", name, place, call=call, rank=rank), value.value)
        return visit(value)

    def sizes(value: Expression, name: str) -> Expression:
        if isinstance(value, ListOrTuple):
            items = (size(v, name, i) for i, v in enumerate(value.items))
            return replace(value, items=tuple(items))
        if isinstance(value, Literal) and isinstance(value.value, tuple):
            made = [
                sizes(Literal(v), name)
                if isinstance(v, tuple)
                else size(Literal(v), name, i)
                for i, v in enumerate(value.value)
            ]
            if all(isinstance(v, Literal) for v in made):
                return Literal(tuple(v.value for v in made if isinstance(v, Literal)))
            return ListOrTuple(tuple(made), "()")
        return size(value, name, 0)

    def visit(value: Expression) -> Expression:
        if switched and isinstance(value, Call) and value.function == ATTENTION:
            return _switched(value.rebuilt(visit), change)
        if isinstance(value, Method) and value.name in _SIZED:
            call, rank = next(calls), len(value.args)
            args = tuple(
                size(v, value.name, i, call, rank) for i, v in enumerate(value.args)
            )
            return replace(value, target=visit(value.target), args=args)
        if isinstance(value, Call) and (value.options or value.function in _FILLED):
            args = tuple(map(visit, value.args))
            if value.function in _FILLED and args:
                args = (sizes(value.args[0], "shape"), *args[1:])
            options = tuple(
                (
                    name,
                    sizes(v, _WORDS.get(name, name)) if name in _OPTIONS else visit(v),
                )
                for name, v in value.options
            )
            return replace(value, args=args, options=options)
        if isinstance(value, Subscript):
            keys = tuple(
                Slice(
                    k.start and size(k.start, "start", i),
                    k.stop and size(k.stop, "stop", i),
                    k.step,
                )
                if isinstance(k, Slice)
                else visit(k)
                for i, k in enumerate(value.keys)
            )
            return replace(value, target=visit(value.target), keys=keys)
        if isinstance(value, BinOp) and value.operator in _SUMS and _on_host(value):
            return replace(
                value,
                left=size(value.left, "left", 0),
                right=size(value.right, "right", 0),
            )
        return value.rebuilt(visit)

    made = block.rebuilt(visit)
    for statement in made.statements:
        if isinstance(statement, Loop) and statement.count and _calls(statement):
            statement.count = size(statement.count, "rounds", 0)
    return made


def _switched(call: Expression, change: Change) -> Expression:
    """An attention that is causal or not as the change says."""
    assert isinstance(call, Call)
    options = dict(call.options)
    causal = options.pop(_CAUSAL, Literal(False))
    if isinstance(causal, Literal):
        causal = change(Slot("", _CAUSAL, default=False), causal.value)
    if not isinstance(causal, Literal) or causal.value is not False:
        before = [
            (name, options.pop(name)) for name in ("attn_mask",) if name in options
        ]
        return replace(call, options=(*before, (_CAUSAL, causal), *options.items()))
    return replace(call, options=tuple(options.items()))


def _calls(loop: Loop) -> bool:
    """Whether a loop calls modules again and again, whichever turn it is."""
    if loop.index is not None or loop.condition is not None:
        return False
    return any(isinstance(e, ModuleCall) for e in every_expression(loop.body))


def _on_host(value: BinOp) -> bool:
    """Whether the sum is Python's, of sizes."""
    return any(
        getattr(side, "host", False) or (isinstance(side, BinOp) and _on_host(side))
        for side in (value.left, value.right)
    )
