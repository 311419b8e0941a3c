"""Conditions that an If around them decides are not asked again; others are."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.harness.source import check_source, floats, graph, node

WEIGHTS = {
    "two": np.array(2),
    "0": np.array(0),
    "trips": np.array(3),
    "yes": np.array(True),
}


def _is_long(x: str, at: str) -> list[onnx.NodeProto]:
    """Nodes that ask whether x has more than two rows; the answer is `{at}long`."""
    return [
        node("Shape", x, f"{at}shape"),
        node("Gather", f"{at}shape 0", f"{at}rows"),
        node("Less", f"two {at}rows", f"{at}long"),
    ]


def _branch(nodes: list[onnx.NodeProto], end: str) -> onnx.GraphProto:
    made = helper.make_tensor_value_info(end, TensorProto.FLOAT, None)
    return helper.make_graph(nodes, end, [], [made])


def _if(
    condition: str, then: list[onnx.NodeProto], other: list[onnx.NodeProto], end: str
) -> onnx.NodeProto:
    sides = [_branch(side, side[-1].output[0]) for side in (then, other)]
    return node("If", condition, end, then_branch=sides[0], else_branch=sides[1])


def _asked_inside(x: str) -> onnx.ModelProto:
    inner = [node("Tanh", "x", "a")], [node("Exp", "x", "b")]
    then = [*_is_long(x, "in_"), _if("in_long", *inner, "c"), node("Neg", "c", "d")]
    made = [*_is_long("x", ""), _if("long", then, [node("Abs", "x", "e")], "y")]
    return graph(made, WEIGHTS, x=("batch", 4), z=("other", 4))


@pytest.mark.parametrize("rows", [(1, 1), (1, 3), (3, 1), (3, 3)])
def test_a_condition_of_the_same_form_on_another_input_is_asked(
    rows: tuple[int, int],
) -> None:
    feeds = {"x": floats(rows[0], 4), "z": floats(rows[1], 4, seed=1)}
    text = check_source(_asked_inside("z"), feeds=feeds)
    assert "z.shape[0]" in text


def test_a_condition_on_the_same_input_is_not_asked_again() -> None:
    text = check_source(
        _asked_inside("x"), "y = -ops.tanh(x) if 2 < x.shape[0] else abs(x)"
    )
    assert "exp" not in text


def _loop(condition: str) -> onnx.ModelProto:
    """A loop behind a condition, which asks it again, or one of its own value."""
    inner = [node("Tanh", "pair", "a")], [node("Exp", "pair", "b")]
    body = [
        node("Identity", "on", "still"),
        node("Concat", "v v", "pair", axis=0),
        *_is_long("v", "in_"),
        _if(condition, *inner, "next"),
    ]
    info = helper.make_tensor_value_info
    flag, kind = TensorProto.BOOL, TensorProto.FLOAT
    given = [
        info("i", TensorProto.INT64, []),
        info("on", flag, []),
        info("v", kind, None),
    ]
    ends = [info("still", flag, []), info("next", kind, None)]
    run = node(
        "Loop", "trips yes x", "t", body=helper.make_graph(body, "b", given, ends)
    )
    made = [*_is_long("x", ""), _if("long", [node("Abs", "x", "e")], [run], "y")]
    return graph(made, WEIGHTS, x=("batch", 4))


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("condition", "ifs"), [("long", 1), ("in_long", 2)])
def test_conditions_in_a_loop(condition: str, ifs: int, rows: int) -> None:
    text = check_source(_loop(condition), size=rows)
    assert text.count("2 < ") == ifs, text
