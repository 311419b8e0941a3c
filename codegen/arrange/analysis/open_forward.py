"""Open a forward: sizes of reshapes, slices and loops become holes."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from itertools import count
from typing import Any, Protocol

from burnish import ops
from burnish.codegen.arrange.analysis.holes import Slot
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    Expression,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    ModuleCall,
    Slice,
    Subscript,
    every_expression,
)

_SIZED = frozenset(("reshape", "expand", "repeat", "split"))
_FILLED = frozenset(("Tensor.zeros", "Tensor.full"))
_OPTIONS = frozenset(
    ("shape", "sizes", "split_sizes", "num_heads", "repeats", "stride", "pad_width")
)
_WORDS = {"pad_width": "padding"}
ATTENTION = "ops.scaled_dot_product_attention"
_CAUSAL = "is_causal"
_CONVOLUTIONS = {
    f"ops.{convolve.__name__}": {
        name: parameter.default
        for name, parameter in signature(convolve).parameters.items()
        if name in ("dilation", "padding", "stride")
    }
    for convolve in (ops.conv, ops.conv_transpose)
}
"""The window of convolutions whose filters are no parameters, and its defaults."""
_SUMS = frozenset(("+", "-", "*", "//", "%"))


class Open(Protocol):
    """Makes a hole for a value in its slot."""

    def __call__(
        self, slot: Slot, value: Any, is_implied: bool = False
    ) -> Expression: ...


def opened_forward(block: Block, open_: Open, switched: bool = False) -> Block:
    """The block with holes for sizes: what reshapes and slices are written with.

    switched: whether an attention is causal, too.
    """

    calls = count(1)

    def size(
        value: Expression, name: str, place: int, call: int = 0, rank: int = 0
    ) -> Expression:
        if isinstance(value, Literal) and type(value.value) is int:
            if value.value in (-1, 0) or (value.value == 1 and not rank):
                return value
            return open_(Slot("", name, place, call=call, rank=rank), value.value)
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
            made = value.rebuilt(visit)
            assert isinstance(made, Call)
            return _switched(made, open_)
        if switched and isinstance(value, Call) and value.function in _CONVOLUTIONS:
            args = tuple(map(visit, value.args))
            return _windowed(replace(value, args=args), open_)
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


def _switched(call: Call, open_: Open) -> Expression:
    """An attention with a hole for whether it is causal."""
    options = dict(call.options)
    causal = options.pop(_CAUSAL, Literal(False))
    if isinstance(causal, Literal):
        slot = Slot("", _CAUSAL, default=False)
        causal = open_(slot, causal.value, is_implied=True)
    before = [(name, options.pop(name)) for name in ("attn_mask",) if name in options]
    return replace(call, options=(*before, (_CAUSAL, causal), *options.items()))


def _windowed(call: Call, open_: Open) -> Expression:
    """A convolution of given filters with holes for the sizes of its window.

    A padding that has a name ("same_upper") is no size, and stays as it is.
    """
    usual = _CONVOLUTIONS[call.function]
    written = dict(call.options)
    window = []
    for name, default in usual.items():
        made = written.pop(name, Literal(default))
        if isinstance(made, Literal) and not isinstance(made.value, str):
            implied = name not in dict(call.options)
            made = open_(Slot("", name, default=default), made.value, implied)
        window.append((name, made))
    return replace(call, options=(*window, *written.items()))


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
