"""Gradients of a captured function: its vector-Jacobian products, recorded as calls.

An operator whose rules are made of operators that kernels know is differentiated by
them, one call for each. The rules of any other are one call, `Pull`, of plain arrays,
as they are without a capture.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from burnish._engine.pytree import leaves
from burnish.autodiff import Gradients, Variable
from burnish.capture.ref import Ref
from burnish.capture.tape import Call
from burnish.nn.core.param import Stored
from burnish.operator import Operator
from burnish.tensor import Tensor

_IN_PARTS = {
    *("conv", "conv_transpose", "matmul", "relu", "relu6", "hard_tanh", "cast"),
    *("add", "sub", "mul", "div", "neg", "where", "exp", "sqrt", "square"),
    *("reshape", "transpose", "broadcast_to", "reduce_sum", "reduce_mean"),
    *("getitem", "concat_of", "split", "pad_constant", "window_sum", "var"),
    *("maximum", "minimum", "clip", "abs_", "pow_", "log", "log1p", "reciprocal"),
    *("elu", "celu", "softsign", "prelu_of", "hard_sigmoid", "huber"),
    *("reduce_max", "reduce_min", "reduce_l2", "std", "threshold", "sin", "cos"),
    *("flip", "roll", "pad_repeated", "einsum_of", "elementwise_cross_entropy"),
    *("low_rank_add", "dropped", "log_sigmoid", "sigmoid_gate"),
}
"""Operators whose rules are written down as the operators that they consist of."""

_UNREAD = {
    *("channel_norm", "layer_norm_from", "linear", "rms_norm_from"),
    *("softmax_cross_entropy", "erf", "gelu", "hard_swish", "leaky_relu", "softplus"),
    "swish",
}
"""Operators whose rules can do without their first result, which need not be kept."""


class Pull:
    """The gradient rules of an operator as one call.

    Its arguments: the gradients of the results, None for those that nothing depends
    on; the results, None for one that the rules do not look at; the operator's
    arguments. It gives the gradient of each argument that needs one.
    """

    def __init__(self, of: Operator[Any, Any, Any], options: Any, needed: list[bool]):
        self.of, self.options, self.needed = of, options, needed
        self.name = f"{of.name} gradient"
        self.__name__ = self.name

    def __call__(self, *given: Any) -> list[Any]:
        count = (len(given) - len(self.needed)) // 2
        arrays = [a.data if isinstance(a, Variable) else a for a in given]
        g, y, args = arrays[:count], arrays[count : 2 * count], arrays[2 * count :]
        out, back = (tuple(y), tuple(g)) if count > 1 else (y[0], g[0])
        parts = self.of.pull(back, out, tuple(args), self.options, self.needed)
        both = zip(parts, self.needed, strict=True)  # one rule may give several
        return [part if needed else None for part, needed in both]


class Walk:
    """One `backward()` over the calls that a tape has written down.

    tape: whose. made: its values by place. changed: when parameters got new values, as
    how many calls there were.
    """

    def __init__(self, tape: Any, made: dict[int, Any], changed: dict[int, int]):
        self._tape, self._made, self._changed = tape, made, changed
        self._pending: dict[int, Any] = {}

    def gradients(self, output: Any, gradient: Any) -> Gradients:
        """The gradients of `output` by every leaf, as values of the capture."""
        self._pending[output.place] = gradient
        before = set(self._made)
        for index, call in reversed([*enumerate(self._tape.calls)]):
            places = [each and each.place for each in leaves(call.results)]
            if any(place in self._pending for place in places):
                self._pull(index, call, places)
                self._release(before)
        found = Gradients()
        for place, gradient in self._pending.items():
            leaf = self._made[place]
            if leaf.node is not None:
                found._found[leaf.node] = gradient
        return found

    def _pull(self, index: int, call: Call, places: list[int | None]) -> None:
        g = [None if p is None else self._pending.pop(p, None) for p in places]
        args = [self._value(arg) for arg in call.args]
        needed = [getattr(arg, "node", None) is not None for arg in args]
        if not any(needed):
            return
        results = [None if p is None else self._made[p] for p in places]
        self._check(index, call, args, results)
        function = call.function
        if function.name in _IN_PARTS:
            back, out = g[0], results[0]
            if len(g) > 1:
                back, out = tuple(map(_or_zeros, g, results)), tuple(results)
            parts = function.pull(back, out, tuple(args), call.options, needed)
        else:
            if function.name in _UNREAD:
                results[0] = None
            pull = Pull(function, call.options, needed)
            parts = self._tape.call(pull, (*g, *results, *args), {})
        for arg, need, part in zip(args, needed, parts, strict=True):
            if need and part is not None:
                self._add(arg, part)

    def _release(self, before: set[int]) -> None:
        """Let go of the values that were made since and that are no gradient yet."""
        kept = {id(gradient) for gradient in self._pending.values()}
        since = itertools.takewhile(lambda p: p not in before, reversed(self._made))
        for place in [p for p in since if id(self._made[p]) not in kept]:
            del self._made[place]

    def _check(self, index: int, call: Call, args: list[Any], made: list[Any]) -> None:
        """Refuse what would not be differentiated as without a capture."""
        nodes = [each.node for each in made if each is not None]
        node = next(filter(None, nodes), None)
        if not isinstance(call.function, Operator):
            name = getattr(call.function, "__name__", "a function")
            self._tape.refuse(f"the gradient of {name} is no operator's")
        if node is None or node.operator is not call.function:
            self._tape.refuse(f"{call.function.name} is recorded in a way of its own")
        for arg, ref in zip(args, call.args, strict=True):
            if isinstance(ref, Ref) and self._tape.ref(arg).place != ref.place:
                self._tape.refuse("a value is changed by inplace()")
            if isinstance(arg, Stored):
                if arg.derived:
                    self._tape.refuse(f"a {type(arg).__name__} is made of others")
                if self._changed.get(id(arg), 0) > index:
                    self._tape.refuse("gradients are asked for behind an update")
        if any(isinstance(each, Ref) for each in leaves(call.options)):
            self._tape.refuse(f"an option of {call.function.name} is a tensor")

    def _value(self, arg: Any) -> Any:
        return self._made[arg.place] if isinstance(arg, Ref) else arg

    def _add(self, arg: Any, part: Any) -> None:
        if not isinstance(part, Variable):
            part = Tensor.wrap(np.asarray(part), arg.device.inner())
        place = self._tape.ref(arg).place
        before = self._pending.get(place)
        self._pending[place] = part if before is None else before + part


def _or_zeros(gradient: Any, like: Any) -> Any:
    """The gradient of one of several results; 0 for one that nothing depends on."""
    if gradient is not None:
        return gradient
    return Tensor.wrap(np.zeros(like.shape, like.dtype), like.device.inner())
