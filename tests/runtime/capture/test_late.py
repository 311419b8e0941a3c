"""Dictionaries of rows are made behind the calls of a capture, and of a plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor, ops
from burnish.capture import CaptureError, capture

CLASSES = ["no", "yes"]


def scores(x: Tensor) -> Any:
    y = ops.softmax(x)
    return ops.arg_max(y, axis=1), ops.zip_map(y, CLASSES)


def first_of_both(x: Tensor) -> Any:
    return {"a": [ops.zip_map(x + 1, CLASSES)], "b": ops.zip_map(x, CLASSES)}


@pytest.mark.parametrize("function", [scores, first_of_both])
@pytest.mark.parametrize("make", [burnish.compile, capture])
def test_dictionaries_are_those_of_each_run(
    function: Callable[..., Any], make: Callable[..., Any]
) -> None:
    rows = [np.array(x, np.float32) for x in ([[1, 2]], [[3, 0]], [[np.nan, 0]])]
    ran = make(function, Tensor(rows[0])) if make is capture else make(function)
    for x in (*rows, rows[0]):
        _check_same(ran(Tensor(x)), function(Tensor(x)))
    if make is burnish.compile:
        assert "eager" not in ran.explain()


def test_no_rows_are_no_dictionaries() -> None:
    ran = burnish.compile(scores)
    for _ in range(2):
        labels, rows = ran(Tensor(np.zeros((0, 2), np.float32)))
        assert labels.shape == (0,)
        assert rows == []


LOOKS: dict[str, Callable[[Any], Any]] = {
    "an item": lambda rows: rows[0],
    "the length": len,
    "a loop": lambda rows: [row["yes"] for row in rows],
    "truth": lambda rows: 1 if rows else 0,
    "equality": lambda rows: 1 if rows == [] else 0,
    "a sum": lambda rows: rows.__add__([{}]),
    "a sum to a list": lambda rows: [{}].__iadd__(rows),
    "text": str,
    "a form": lambda rows: f"{rows}",
    "JSON": json.dumps,
    "an operator": lambda rows: ops.dict_vectorizer(rows[0], CLASSES).tolist(),
    "a copy": lambda rows: rows.copy(),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_function_that_looks_at_dictionaries_runs_eagerly(
    look: Callable[[Any], Any],
) -> None:
    def function(x: Tensor) -> Any:
        return x * 2, look(ops.zip_map(x, CLASSES))

    x = Tensor(np.ones((1, 2), np.float32))
    with pytest.raises(CaptureError):
        capture(function, x)
    assert burnish.compile(function)(x)[1] == function(x)[1]


def _check_same(made: Any, wanted: Any) -> None:
    if isinstance(wanted, dict | list | tuple):
        assert type(made) is type(wanted)
        assert len(made) == len(wanted)
        keys = wanted if isinstance(wanted, dict) else range(len(wanted))
        for key in keys:
            _check_same(made[key], wanted[key])
    else:
        np.testing.assert_allclose(np.asarray(made), np.asarray(wanted), rtol=1e-6)
