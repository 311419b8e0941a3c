"""Programs of the C library for element-wise optimizers, traced from their formulas.

The formula runs on symbols, as it does for CUDA kernels. Its statements become steps on
registers: weight, gradient, new weight, the state's arrays, what steps make, constants.
Constants are expressions of the count of steps and the rate, so that one trace serves
many steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from burnish.backend.symbols import Symbol, Unwritten
from burnish.optim.rules.scalars import Scalar, Scalars
from burnish.optim.rules.traces import Recording, recorded

_STEPS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "less": "less",
    "less_equal": "at_most",
    "greater": "greater",
    "greater_equal": "at_least",
    "equal": "equal",
    "not_equal": "unequal",
    "logical_and": "and",
    "logical_or": "or",
    "logical_not": "not",
    "negative": "neg",
    "maximum": "max",
    "minimum": "min",
    "where": "where",
    "power": "pow",
    "number": "none",
    **{
        name: name
        for name in (
            *("exp", "expm1", "log", "log1p", "sqrt", "erf", "tanh", "square", "abs"),
            *("rint", "floor", "ceil"),
        )
    },
}
"""Functions of formulas, and the steps of programs that compute them."""


class _Step(NamedTuple):
    """out <- op(args), by their names."""

    op: str
    out: str
    args: tuple[str, ...]


class _Program(Recording):
    """The steps of one formula; its constants are numbers of the record."""

    def __init__(self) -> None:
        super().__init__(np.float32)
        self.steps: list[_Step] = []

    def call(self, name: str, args: Sequence[Any], out: Symbol | None) -> Symbol:
        if name == "sign":
            (x,) = args
            is_less, is_greater = (self.call(f, (x, 0), None) for f in _SIDES)
            x = self.call("where", (is_less, -1, x), None)
            return self.call("where", (is_greater, 1, x), out)
        if name in ("isnan", "truth"):
            other = args[0] if name == "isnan" else 0
            return self.call("not_equal", (args[0], other), out)
        if name not in _STEPS:
            raise Unwritten(f"programs have no {name}")
        given = tuple(map(self.operand, args))
        if out is None:
            self.count += 1
            out = Symbol(self, f"t{self.count}", "wide")
        self.steps.append(_Step(_STEPS[name], out.name, given))
        return out

    def change(self, symbol: Symbol, value: Any) -> Symbol:
        if value is not symbol:
            self.call("number", (value,), symbol)
        return symbol

    def operand(self, value: Any) -> str:
        return super().operand(float(value) if type(value) in _TRUTHS else value)

    def scalar(self, value: Scalar) -> Any:
        found = super().scalar(value)
        return float(found) if type(found) in _TRUTHS else found


_SIDES = "less", "greater"
_TRUTHS = bool, np.bool_


class _State(dict[str, Any]):
    """The state of a traced rule: it has the slots and "step", and nothing is added."""

    def __missing__(self, key: str) -> Any:
        raise Unwritten(f"{key} is no slot")

    def __setitem__(self, key: str, value: Any) -> None:
        if value is not self[key]:  # which `state[key] += value` gives back
            self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Unwritten("a formula changes the arrays of its state in place alone")

    __delitem__ = __contains__ = __ior__ = _refuse
    get = pop = setdefault = update = clear = popitem = _refuse


class Trace(NamedTuple):
    """The program of a formula, for every count of steps and rate that it branches for.

    scalars: the numbers that depend on these two. places: of those among the scalars
    that are constants, by the field of the record. fields: the other numbers.
    """

    scalars: Scalars
    places: dict[str, int]
    fields: dict[str, Any]

    def at(self, step: int, rate: float) -> dict[str, Any] | None:
        """The numbers of a `formula` record; None where the formula is another one."""
        values = self.scalars.at(step, rate)
        if values is None:
            return None
        try:
            found = {key: float(values[place]) for key, place in self.places.items()}
        except (OverflowError, TypeError):  # too large, or complex
            return None
        return self.fields | found


def traced(
    write: Callable[..., None], slots: Sequence[str], step: int, rate: float
) -> Trace | None:
    """The program of the rule `write` at a count of steps; its code is an array.

    None where no record expresses the rule.
    """
    return recorded(partial(_traced, write, slots), step, rate)


def _traced(
    write: Callable[..., None],
    slots: Sequence[str],
    scalars: Scalars,
    step: Any,
    rate: Any,
) -> Trace | None:
    from burnish.kernels.records import FORMULA  # late: most need no kernels

    script = _Program()
    names = [*_ARRAYS, *(f"s{i}" for i in range(len(slots)))]
    weight, grad, new, *arrays = (script.variable(name) for name in names)
    state = _State(zip((*slots, "step"), (*arrays, step), strict=True))
    try:
        write(new, weight, grad, state, rate)
        code = _coded(script, names)
    except Exception:  # a call with arrays succeeds, or raises with the reason
        return None
    most, count = FORMULA["constants"], len(script.constants)
    if len(slots) > FORMULA["slots"] or count > most or not script.steps:
        return None
    constants = [*script.constants, *[0.0] * (most - count)]
    fields = {
        "code": np.frombuffer(code, np.uint8),
        "slots": len(slots),
        "steps": len(script.steps),
        "constants": count,
        **{f"s{i}": None for i in range(len(slots), FORMULA["slots"])},
        **{f"k{i}": number for i, number in enumerate(constants)},
    }
    places = {f"k{i}": place for i, place in script.scalars.items()}
    return Trace(scalars, places, fields)


_ARRAYS = "weight", "grad", "new"


def _coded(script: _Program, names: Sequence[str]) -> bytes:
    """The program's code: values that are not used again leave their registers."""
    from burnish.kernels.records import FORMULA, STEPS

    last = {
        name: i
        for i, step in enumerate(script.steps)
        for name in (*step.args, step.out)
    }
    registers = {name: i for i, name in enumerate(names)}
    for i in range(len(script.constants)):
        registers[f"constant[{i}]"] = FORMULA["registers"] + i
    free = [*range(FORMULA["registers"] - 1, len(names) - 1, -1)]
    code = b""
    for i, step in enumerate(script.steps):
        a, b, c = [*(registers[name] for name in step.args), 0, 0][:3]
        for name in {*step.args} - {step.out}:
            if name.startswith("t") and last[name] == i:
                free.append(registers[name])
        if step.out not in registers:
            if not free:
                raise Unwritten("its values do not fit into the registers")
            registers[step.out] = free.pop()
        out = registers[step.out]
        if last[step.out] == i and step.out.startswith("t"):
            free.append(out)
        code += struct.pack("=6i2d", STEPS[step.op], out, a, b, c, 0, 0.0, 0.0)
    return code
