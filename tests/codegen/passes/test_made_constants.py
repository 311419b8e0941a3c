"""Constants that functions of a shape made are no weights, and numbers if possible."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.harness.source import check_source, floats, graph, node


@pytest.mark.parametrize(
    "name", ["zeros_like_1", "new_zeros", "/part/Constant_output_0"]
)
def test_zeros_that_no_author_named_are_a_number(name: str) -> None:
    text = check_source(
        graph([node("Add", f"x {name}", "y")], {name: np.zeros((2, 4), "f")}, x=(2, 4)),
        "return x + 0.0",
    )
    assert "Param" not in text


ONE_NUMBER = [
    # name, whether it is a parameter
    ("/head/Squeeze_1_output_0", False),  # PyTorch's, folded by another tool
    ("/head/Exp_output_0", True),  # of a parameter, where a tool has folded it
    ("head/mul/y;head/mul", False),  # TFLite's
    ("head/scale/ReadVariableOp;head/mul", True),
    ("scale", True),
]


@pytest.mark.parametrize(("name", "trains"), ONE_NUMBER)
def test_one_number_that_an_exporter_named_is_no_parameter(
    name: str, trains: bool
) -> None:
    text = check_source(
        graph([node("Mul", ["x", name], "y")], {name: np.float32(8)}, x=(2, 4))
    )
    assert ("nn.Param" in text) is trains
    assert ("x * 8.0" in text) is not trains


def test_zeros_that_widen_stay_a_table() -> None:
    text = check_source(
        graph(
            [node("Add", "x zeros_like", "y")],
            {"zeros_like": np.zeros((3, 4), "f")},
            x=(1, 4),
        ),
    )
    assert "x + self.bias" in text
    assert "nn.Param" not in text


def test_a_constant_of_several_numbers_trains_in_a_product_alone() -> None:
    added, taken = "/part/Constant_1_output_0", "/part/Constant_2_output_0"
    text = check_source(
        graph(
            [node("Add", f"x {added}", "a"), node("MatMul", f"a {taken}", "y")],
            {added: floats(2, 4), taken: floats(4, 4, seed=1)},
            x=(2, 4),
        ),
        "self.linear = nn.Linear(4, 4, bias=False)",
    )
    assert "nn.Param" not in text


def test_convolutions_of_computed_filters_are_one_class_for_all_windows() -> None:
    nodes, weights, x = [], {}, "x"
    for number in range(3):
        at, spread = f"convs.{number}", 2**number
        weights[f"{at}.filters"] = floats(4, 4, 3, seed=number)
        window = {"pads": [spread, spread], "dilations": [spread]}
        nodes += [
            node("Tanh", f"{at}.filters", f"w{number}", f"/{at}/Tanh"),
            node("Conv", f"{x} w{number}", f"c{number}", f"/{at}/Conv", **window),
        ]
        x = f"c{number}"
    text = check_source(
        graph(nodes, weights, outputs=x, x=(2, 4, 16)),
        "self.convs = nn.Sequential(Conv(), Conv(dilation=2), Conv(dilation=4))",
    )
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 2, text
