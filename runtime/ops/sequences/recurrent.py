"""Recurrent networks over whole sequences, as ONNX defines them.

Legend: T time, N batch, I inputs, H hidden, D directions (2 when bidirectional).
layout 0: x (T, N, I), results (T, D, N, H), states (D, N, H); layout 1: N comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from burnish.autodiff import Variable
from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed
from burnish.ops._kernels.cells import (
    ACTIVATIONS,
    SCALED,
    Activation,
    Step,
    activation,
    gru_step,
    lstm_step,
    rnn_step,
    scan,
)
from burnish.ops._kernels.dynamic import rounded_by_range
from burnish.ops._shapes import ranked
from burnish.ops.arrays.shape import stack
from burnish.ops.linalg.linear import linear


@composed
def lstm(
    x: Any,
    weight: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    peephole: Any = None,
    *,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    input_forget: bool = False,
    layout: int = 0,
    dynamic: bool = False,
) -> tuple[Array, Array, Array]:
    """Every step's result, the last h, the last c; gates in the order i, o, f, c.

    weight (D, 4 * H, I), recurrence (D, 4 * H, H), bias (D, 8 * H): the inputs' and
    the states', peephole (D, 3 * H): of i, o, f. clip bounds what goes into the gates,
    but as in onnxruntime not the cell on its way out. dynamic: before its product x is
    rounded to 8 bits over the range of its values, and so is each step's h.
    """
    functions = _activations(
        "lstm", activations or ("Sigmoid", "Tanh", "Tanh") * 2, 3, direction,
        activation_alpha, activation_beta, clip,
    )  # fmt: skip

    def step(d: int) -> tuple[Step, Any]:
        peeps = None if peephole is None else peephole[d]
        both = None if bias is None else sum(_halves(bias[d]))
        own = partial(_rounded_product, weight=recurrence[d]) if dynamic else None
        made = lstm_step(
            recurrence[d],
            "iofc",
            functions[d],
            peephole=peeps,
            input_forget=input_forget,
            product=own,
        )
        return made, both

    if dynamic:
        x = rounded_by_range(x)

    y, (h, c) = _run(
        step, x, weight, recurrence, (initial_h, initial_c), direction, lengths, layout
    )
    return y, h, c


@composed
def gru(
    x: Any,
    weight: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    *,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    linear_before_reset: bool = False,
    layout: int = 0,
) -> tuple[Array, Array]:
    """Every step's result and the last one; gates in the order z, r, h.

    weight (D, 3 * H, I), recurrence (D, 3 * H, H), bias (D, 6 * H).
    """
    functions = _activations(
        "gru", activations or ("Sigmoid", "Tanh") * 2, 2, direction,
        activation_alpha, activation_beta, clip,
    )  # fmt: skip

    def step(d: int) -> tuple[Step, Any]:
        inward, own = (None, None) if bias is None else _halves(bias[d])
        made = gru_step(
            recurrence[d],
            own,
            "zrh",
            functions[d],
            linear_before_reset=linear_before_reset,
        )
        return made, inward

    y, (h,) = _run(
        step, x, weight, recurrence, (initial_h,), direction, lengths, layout
    )
    return y, h


@composed
def rnn(
    x: Any,
    weight: Any,
    recurrence: Any,
    bias: Any = None,
    lengths: Any = None,
    initial_h: Any = None,
    *,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Array, Array]:
    """Every step's result and the last one.

    weight (D, H, I), recurrence (D, H, H), bias (D, 2 * H).
    """
    functions = _activations(
        "rnn", activations or ("Tanh",) * 2, 1, direction,
        activation_alpha, activation_beta, clip,
    )  # fmt: skip

    def step(d: int) -> tuple[Step, Any]:
        both = None if bias is None else sum(_halves(bias[d]))
        return rnn_step(recurrence[d], functions[d][0]), both

    y, (h,) = _run(
        step, x, weight, recurrence, (initial_h,), direction, lengths, layout
    )
    return y, h


def _run(
    step: Callable[[int], tuple[Step, Any]],
    x: Any,
    weight: Any,
    recurrence: Any,
    initial: tuple[Any, ...],
    direction: str,
    lengths: Any,
    layout: int,
) -> tuple[Any, tuple[Any, ...]]:
    for name, part in (("x", x), ("weight", weight), ("recurrence", recurrence)):
        ranked(f"recurrent: {name}", part, 3)
    if layout:
        x = x.transpose((1, 0, 2))
        initial = tuple(s if s is None else s.transpose((1, 0, 2)) for s in initial)
    n, hidden = x.shape[1], recurrence.shape[-1]
    results, states = [], []
    for d in range(weight.shape[0]):
        made, bias = step(d)
        start = tuple(zeros(x, (n, hidden)) if s is None else s[d] for s in initial)
        y, last = scan(
            made,
            linear(x, weight[d], bias),
            start,
            reverse=direction == "reverse" or d == 1,
            lengths=lengths,
        )
        results.append(y)
        states.append(last)
    if layout:
        y = stack(results, axis=2).transpose((1, 0, 2, 3))
        return y, tuple(stack(each, axis=1) for each in zip(*states, strict=True))
    y = stack(results, axis=1)
    return y, tuple(stack(each, axis=0) for each in zip(*states, strict=True))


def zeros(x: Any, shape: tuple[int, ...]) -> Any:
    """A plain array of zeros where x is, in x's dtype."""
    xp = x.device.xp if isinstance(x, Variable) else namespace(x)
    return xp.zeros(shape, x.dtype)


def _rounded_product(h: Any, *, weight: Any) -> Any:
    """h, rounded over the range of its values, times weight"""
    return linear(rounded_by_range(h), weight)


def _halves(bias: Any) -> tuple[Any, Any]:
    """The inputs' half and the states'."""
    middle = bias.shape[0] // 2
    return bias[:middle], bias[middle:]


def _activations(
    where: str,
    names: Sequence[str],
    each: int,
    direction: str,
    alpha: Sequence[float] | None,
    beta: Sequence[float] | None,
    bound: float | None,
) -> list[list[Activation]]:
    """The functions of each direction; alpha and beta go to those that take one.

    The third of an LSTM, of the cell on its way out, has no bound.
    """
    if direction not in ("forward", "reverse", "bidirectional"):
        raise InputError(
            f"{where}: expected direction 'forward', 'reverse' or 'bidirectional', "
            f"got {direction!r}"
        )
    unknown = [name for name in names if name.lower() not in ACTIVATIONS]
    if unknown:
        raise InputError(
            f"{where}: expected activations among {sorted(ACTIVATIONS)}, got {unknown}"
        )
    count = each * (2 if direction == "bidirectional" else 1)
    if len(names) < count:
        raise InputError(f"{where}: expected {count} activations, got {len(names)}")
    alphas, betas = iter(alpha or ()), iter(beta or ())
    made = []
    for place, name in enumerate(names[:count]):
        takes = SCALED.get(name.lower(), 0)
        a = next(alphas, None) if takes else None
        b = next(betas, None) if takes > 1 else None
        made.append(activation(name, a, b, None if place % each == 2 else bound))
    return [made[i : i + each] for i in range(0, count, each)]
