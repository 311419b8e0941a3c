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
    opener = _Opener(open_, switched)
    made = block.rebuilt(opener.visit)
    for statement in made.statements:
        if isinstance(statement, Loop) and statement.count and _calls(statement):
            statement.count = opener.size(statement.count, "rounds", 0)
    return made


class _Opener:
    """Rebuilds expressions with holes for sizes, in the order of the source."""

    def __init__(self, open_: Open, switched: bool):
        self._open, self._switched = open_, switched
        self._calls = count(1)

    def visit(self, value: Expression) -> Expression:
        """The expression with holes."""
        match value:
            case Call(function=function) if self._switched and function == ATTENTION:
                made = value.rebuilt(self.visit)
                assert isinstance(made, Call)
                return _switched(made, self._open)
            case Call(function=function) if (
                self._switched and function in _CONVOLUTIONS
            ):
                args = tuple(map(self.visit, value.args))
                return _windowed(replace(value, args=args), self._open)
            case Method(name=name) if name in _SIZED:
                return self._method(value)
            case Call() if value.options or value.function in _FILLED:
                return self._call(value)
            case Subscript(target=target):
                keys = tuple(self._key(k, i) for i, k in enumerate(value.keys))
                return replace(value, target=self.visit(target), keys=keys)
            case BinOp(operator=sign) if sign in _SUMS and _on_host(value):
                left = self.size(value.left, "left", 0)
                right = self.size(value.right, "right", 0)
                return replace(value, left=left, right=right)
        return value.rebuilt(self.visit)

    def size(
        self, value: Expression, name: str, place: int, call: int = 0, rank: int = 0
    ) -> Expression:
        """A hole for a number; 1 is none unless it has a rank, -1 and 0 never are."""
        if isinstance(value, Literal) and type(value.value) is int:
            pads = name == _WORDS["pad_width"]
            if value.value in (-1, 0) or (value.value == 1 and not rank and not pads):
                return value
            return self._open(Slot("", name, place, call=call, rank=rank), value.value)
        return self.visit(value)

    def _sizes(self, value: Expression, name: str) -> Expression:
        if isinstance(value, ListOrTuple):
            items = (self.size(v, name, i) for i, v in enumerate(value.items))
            return replace(value, items=tuple(items))
        if not isinstance(value, Literal) or not isinstance(value.value, tuple):
            return self.size(value, name, 0)
        made = [
            self._sizes(Literal(v), name)
            if isinstance(v, tuple)
            else self.size(Literal(v), name, i)
            for i, v in enumerate(value.value)
        ]
        if all(isinstance(v, Literal) for v in made):
            return Literal(tuple(v.value for v in made if isinstance(v, Literal)))
        return ListOrTuple(tuple(made), "()")

    def _method(self, value: Method) -> Expression:
        call, rank = next(self._calls), len(value.args)
        args = tuple(
            self.size(v, value.name, i, call, rank) for i, v in enumerate(value.args)
        )
        return replace(value, target=self.visit(value.target), args=args)

    def _call(self, value: Call) -> Expression:
        args = tuple(map(self.visit, value.args))
        if value.function in _FILLED and args:
            args = (self._sizes(value.args[0], "shape"), *args[1:])
        options = tuple(
            (n, self._sizes(v, _WORDS.get(n, n)) if n in _OPTIONS else self.visit(v))
            for n, v in value.options
        )
        return replace(value, args=args, options=options)

    def _key(self, key: Expression, place: int) -> Expression:
        if not isinstance(key, Slice):
            return self.visit(key)
        start = key.start and self.size(key.start, "start", place)
        stop = key.stop and self.size(key.stop, "stop", place)
        return Slice(start, stop, key.step)


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
