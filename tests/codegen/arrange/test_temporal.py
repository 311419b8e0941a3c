"""Temporal convolutions: blocks that differ in dilation and padding are one class."""

from __future__ import annotations

import re

import onnx
import pytest

from tests.harness.source import check_source, floats, graph, node


def temporal(padding: list[list[int]], dilations: list[int]) -> onnx.ModelProto:
    nodes, weights, x = [], {}, "x"
    for number, (pads, dilation) in enumerate(zip(padding, dilations, strict=True)):
        y = x
        for step in ("a", "b"):
            path = f"{step}{number}"
            weights[f"w{path}"] = floats(4, 4, 3, seed=len(weights))
            weights[f"v{path}"] = floats(4, seed=len(weights))
            given = {"pads": pads, "dilations": [dilation], "kernel_shape": [3]}
            read = f"{y} w{path} v{path}"
            nodes.append(node("Conv", read, f"c{path}", **given))
            nodes.append(node("Relu", f"c{path}", f"r{path}"))
            y = f"r{path}"
        x, before = f"s{number}", x
        nodes.append(node("Add", f"{y} {before}", x))
    return graph(nodes, weights, outputs=x, x=(2, 4, 40))


GROWING = [1, 2, 4, 8]
CASES = {
    "causal": ([[2 * d, 0] for d in GROWING], GROWING, "padding=((2 * dilation, 0),)"),
    "uneven": ([[d, d + 2] for d in (1, 3, 5)], [2, 4, 6], "padding=((padding, "),
    "even": ([[d, d] for d in GROWING], GROWING, "padding=dilation, dilation"),
    "again": (
        [[d, d] for d in GROWING * 2],
        GROWING * 2,
        "(2 ** (i % 4)) for i in ran",
    ),
    "one loop": ([[d, d] for d in GROWING], GROWING, "Block(2**i) for i in range(4)"),
}


@pytest.mark.parametrize("case", CASES)
def test_dilations_are_arguments_of_one_class(case: str) -> None:
    padding, dilations, line = CASES[case]
    text = check_source(temporal(padding, dilations))
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 2, text
    assert line in text, text


def test_windows_of_several_axes_beside_paddings_of_one_number() -> None:
    nodes, weights, x = [], {}, "x"
    for number, (window, pad) in enumerate([((1, 3), 0), ((1, 5), 1), ((3, 1), 2)]):
        for step in ("a", "b"):
            path = f"{step}{number}"
            weights[f"w{path}"] = floats(4, 4, *window, seed=len(weights))
            weights[f"v{path}"] = floats(4, seed=len(weights))
            given = {"pads": [pad] * 4, "kernel_shape": window}
            nodes.append(node("Conv", f"{x} w{path} v{path}", f"c{path}", **given))
            nodes.append(node("Relu", f"c{path}", f"r{path}"))
            x = f"r{path}"
        nodes.append(node("Sigmoid", x, f"s{number}"))
        x = f"s{number}"
    text = check_source(graph(nodes, weights, outputs=x, x=(2, 4, 12, 12)))
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 2, text


@pytest.mark.parametrize("named", [(1,), (0, 1, 2)])
def test_paddings_by_name_of_computed_filters_are_no_arguments(
    named: tuple[int, ...],
) -> None:
    nodes, weights, x = [], {}, "x"
    for number in range(3):
        at = f"layers.{number}"
        weights[f"{at}.v"] = floats(4, 4, 3, seed=number)
        weights[f"{at}.g"] = floats(4, 1, 1, seed=number + 3)
        given = {"auto_pad": "SAME_UPPER"} if number in named else {"pads": [1, 1]}
        nodes += [
            node("Exp", f"{at}.g", f"e{number}", f"/{at}/Exp"),
            node("Mul", f"{at}.v e{number}", f"w{number}", f"/{at}/Mul"),
            node("Conv", f"{x} w{number}", f"c{number}", f"/{at}/Conv", **given),
            node("Relu", f"c{number}", x := f"r{number}", f"/{at}/Relu"),
        ]
    text = check_source(graph(nodes, weights, outputs=x, x=(2, 4, 20)))
    assert 'padding="same_upper"' in text
