"""Open a class: every integer of constructors and forward becomes a hole."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from burnish import nn
from burnish.codegen.arrange.analysis.holes import Defaults, Hole, Parameters, Slot
from burnish.codegen.arrange.analysis.open_forward import Open, opened_forward
from burnish.codegen.program import (
    BinOp,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    Keyed,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Repeat,
    UnaryOp,
)

_WINDOW = frozenset(("dilation", "kernel_size", "padding", "stride"))


def opened(
    plan: ClassPlan, parameters: Parameters, defaults: Defaults | None = None
) -> tuple[ClassPlan, list[Hole]]:
    """The class with a hole for every size, and the holes in a fixed order.

    defaults: of the source's own classes; where given, whatever they are called with is
    such a size, a switch and a function too.
    """
    holes: list[Hole] = []

    def open_(slot: Slot, value: object, is_implied: bool = False) -> Expression:
        holes.append(Hole(slot, value, is_implied))
        return holes[-1]

    def member(made: Expression, name: str) -> Expression:
        if isinstance(made, Method) and not name:  # super().__init__(...)
            called = Call(plan.base, made.args, made.options)
            found = _constructor(called, "super", parameters, open_, defaults)
            assert isinstance(found, Call)
            return replace(made, args=found.args, options=found.options)
        return _constructor(made, name, parameters, open_, defaults)

    members = [(name, member(made, name)) for name, made in plan.members]
    block = opened_forward(plan.block, open_, switched=defaults is not None)
    return replace(plan, members=members, block=block), holes


def _constructor(
    made: Expression,
    attribute: str,
    parameters: Parameters,
    open_: Open,
    defaults: Defaults | None,
) -> Expression:
    """A constructor with a hole for each size, those that it has by default too."""

    def inner(part: Expression) -> Expression:
        return _constructor(part, attribute, parameters, open_, defaults)

    if isinstance(made, Keyed):
        parts = (
            (k, _constructor(v, k, parameters, open_, defaults)) for k, v in made.items
        )
        return Keyed(tuple(parts))
    optional = isinstance(made, UnaryOp) and isinstance(made.operand, Conditional)
    if optional or isinstance(made, Conditional | ListOrTuple | Method):
        return made.rebuilt(inner)
    if isinstance(made, Repeat):
        size = made.count
        if isinstance(size, Literal) and not made.fixed:
            size = open_(Slot(attribute, "depth"), size.value)
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
            return open_(slot_of(name), value.text)
        if isinstance(value, Literal):
            if type(value.value) is int or is_open:
                return open_(slot_of(name), value.value)
            if _is_window(made.function, name, value.value):
                return open_(slot_of(name), value.value)
            if made.function in ("nn.Param", "nn.Buffer"):
                return _shape(value, attribute, made.function, open_)
            return _sides(value, slot_of(name), open_)
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
            options.append((name, open_(slot_of(name), usual[name], is_implied=True)))
    return replace(made, args=tuple(given), options=tuple(options))


def _is_window(function: str, name: str, value: object) -> bool:
    """Whether it is a size of a convolution's window for each axis, such as (1, 7)."""
    is_sizes = isinstance(value, tuple) and all(type(size) is int for size in value)
    return is_sizes and function.startswith("nn.Conv") and name in _WINDOW


def _shape(value: Literal, attribute: str, callee: str, open_: Open) -> Expression:
    """A shape with holes for its sizes; one of ones and numbers stays a literal."""
    if not isinstance(value.value, tuple) or not value.value:
        return value
    items = [
        Literal(1)
        if size == 1
        else open_(Slot(attribute, "size", place, callee=callee), size)
        for place, size in enumerate(value.value)
    ]
    if all(isinstance(item, Literal) for item in items):
        return Literal(tuple(item.value for item in items if isinstance(item, Literal)))
    return ListOrTuple(tuple(items), "()")


def _sides(value: Literal, slot: Slot, open_: Open) -> Expression:
    """Padding of either side of each axis, ((2, 0),); sizes other than 0 are holes."""
    axes = value.value
    if not isinstance(axes, tuple) or not all(isinstance(a, tuple) for a in axes):
        return value
    if not any(size for sides in axes for size in sides):
        return value
    return ListOrTuple(
        tuple(
            ListOrTuple(
                tuple(
                    open_(replace(slot, place=2 * axis + side), size)
                    if type(size) is int and size
                    else Literal(size)
                    for side, size in enumerate(sides)
                ),
                "()",
            )
            for axis, sides in enumerate(axes)
        ),
        "()",
    )


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
