"""Initial values of buffers that follow a rule: ranges, masks, tables of angles.

A model of other sizes has no file to load its tables from. A buffer that is not
persistent is in no file where a rule makes exactly its numbers.
"""

from __future__ import annotations

import numpy as np

from burnish import nn
from burnish.backend import Device
from burnish.codegen.program import Call, Expression, Literal, Name, Weight

_CLOSE = 1e-5
"""Of frequencies in float32; other tables that start at 1 and decrease differ more."""
_LEAST = 3
"""Shorter tables follow several rules by chance: [0, 1] may be a flag's two values."""
_LOADED = Name("nn.init.loaded")


def start(table: Weight) -> Expression:
    """The initializer that makes these numbers; zeros where no rule is known.

    Of one that is not persistent: exactly these, or those that a file brings.
    """
    made = _rule(table)
    if table.persistent or _makes(made, table):
        return made
    return _LOADED


def is_loaded(table: Weight) -> bool:
    """Whether a file has to bring it beside the model's state."""
    return not table.persistent and start(table) is _LOADED


def _makes(made: Call | Name, table: Weight) -> bool:
    """Whether the initializer gives exactly the table, in its own dtype."""
    name = made.function if isinstance(made, Call) else made.text
    initializer = getattr(nn.init, name.removeprefix("nn.init."))
    if isinstance(made, Call):
        given = (arg.value for arg in made.args if isinstance(arg, Literal))
        initializer = initializer(*given)
    values = table.array
    found = initializer(table.shape, values.dtype, Device("cpu"))
    return found.dtype == values.dtype and np.array_equal(found, values)


def _rule(table: Weight) -> Call | Name:
    values = table.array
    if (
        values.shape != table.shape
        or not values.size
        or values.dtype.kind not in "biuf"
    ):
        return Name("nn.init.zeros")
    first = values.flat[0]
    if (values == first).all():
        return _constant(first)
    if _counts(values):
        return Name("nn.init.arange")
    theta = _frequency(values)
    if theta is not None:
        usual = () if theta == 10000 else (Literal(theta),)
        return Call("nn.init.frequencies", usual)
    if values.ndim > 1 and np.array_equal(values, np.tril(np.ones_like(values))):
        return Name("nn.init.tril")
    return Name("nn.init.zeros")


def _constant(value: np.generic) -> Call | Name:
    if value in (0, 1):
        return Name("nn.init.ones" if value else "nn.init.zeros")
    short = float(str(value)) if isinstance(value, np.floating) else value.item()
    return Call("nn.init.constant", (Literal(short),))


def _counts(values: np.ndarray) -> bool:
    """Whether the last axis counts from 0."""
    length = values.shape[-1] if values.ndim else 0
    return length >= _LEAST and bool((values == np.arange(length)).all())


def _frequency(values: np.ndarray) -> float | None:
    """theta of 1, theta**(-1/n), theta**(-2/n), ... along the last axis."""
    if values.ndim == 0 or values.dtype.kind != "f" or values.shape[-1] < _LEAST:
        return None
    row = values.reshape(-1, values.shape[-1])[0].astype(np.float64)
    if row[0] != 1 or not 0 < row[-1] < 1:
        return None
    length = len(row)
    theta = float(np.rint(row[-1] ** (-length / (length - 1))))
    made = theta ** (-np.arange(length) / length)
    return theta if np.allclose(values, made, rtol=_CLOSE, atol=0) else None
