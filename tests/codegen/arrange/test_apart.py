"""Blocks that recur apart from each other, or side by side, without names."""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx
import pytest

from tests.harness.source import check_source, floats, graph, node


class Images:
    """A model of convolutions over 4 channels, node by node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, object] = {}

    def put(self, kind: str, *read: str, **given: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(kind, read, name, **given))
        return name

    def conv(self, x: str, size: int = 1) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = floats(4, 4, size, seed=len(self.weights))
        return self.put("Conv", x, name, pads=[size // 2] * 2)

    def block(self, x: str) -> str:
        """Two convolutions with what is between them."""
        x = self.put("Tanh", self.conv(x, 3))
        return self.put("Sin", self.put("Neg", self.conv(self.put("Exp", x))))

    def model(self, *ends: str) -> onnx.ModelProto:
        return graph(self.nodes, self.weights, " ".join(ends), x=(2, 4, 8))


def classes(text: str) -> list[str]:
    return re.findall(r"^class (\w+)", text, re.MULTILINE)


def test_a_block_that_recurs_apart_is_one_class() -> None:
    g = Images()
    x = g.put("Relu", g.conv(g.block("x"), 5))
    x = g.put("Cos", g.conv(g.block(x), 7))
    text = check_source(
        g.model(x),
        """
        y = ops.relu(self.conv1(self.double_conv1(x)))
        return ops.cos(self.conv2(self.double_conv2(y)))
        """,
    )
    assert classes(text) == ["DoubleConv", "Model"]


def test_a_block_whose_inner_value_others_read_is_no_class() -> None:
    g = Images()
    x = g.put("Tanh", g.conv("x", 3))
    y = g.put("Sin", g.put("Neg", g.conv(g.put("Exp", x))))
    z = g.put("Relu", g.conv(y, 5))
    inner = g.put("Tanh", g.conv(z, 3))
    end = g.put("Sin", g.put("Neg", g.conv(g.put("Exp", inner))))
    assert classes(check_source(g.model(end, x, inner))) == ["Model"]


SIDES = [
    # branches, and lines of the source
    (2, ("y = self.conv2(ops.maximum(self.double_conv2(y), self.double_conv1(y)))",)),
    (
        4,
        (
            """
            z = self.blocks[0](y)
            for block in self.blocks[1:]:
                z = ops.maximum(z, block(y))
            """,
        ),
    ),
]


@pytest.mark.parametrize(("count", "lines"), SIDES)
def test_blocks_side_by_side_are_a_list(count: int, lines: Sequence[str]) -> None:
    g = Images()
    x = g.put("Relu", g.conv("x", 5))
    ends = [g.block(x) for _ in range(count)]
    total = ends[-1]
    for end in reversed(ends[:-1]):  # the last one first: the list is in this order
        total = g.put("Max", total, end)
    text = check_source(g.model(g.put("Relu", g.conv(total, 7))), *lines)
    assert classes(text) == ["DoubleConv", "Model"]


def test_a_list_ends_where_others_read_a_result() -> None:
    g = Images()
    x = g.put("Relu", g.conv("x", 5))
    first = g.block(g.block(g.block(x)))
    second = g.block(g.block(g.block(first)))
    side = g.put("Relu", g.conv(first, 7))
    check_source(
        g.model(second, side),
        """
        for stage in self.stage1:
            y = stage(y)
        z = y
        for stage in self.stage2:
            z = stage(z)
        """,
    )


def test_a_part_with_an_activation_and_its_factors_is_named_act() -> None:
    g = Images()
    for name in ("a", "b", "c", "d"):
        g.weights.update({f"{name}{n}": floats(1, seed=n + 9) for n in range(11)})

    def block(n: int, x: str, acts: bool) -> str:
        x = g.put("Add", g.put("Mul", f"a{n}", g.conv(x, 3)), f"b{n}")
        if acts:
            x = g.put("Mul", f"c{n}", g.put("HardSwish", x))
            x = g.put("Add", x, f"d{n}")
        return x

    x = "x"
    for n, acts in enumerate((*[True] * 3, False, *[True] * 4, False, True, False)):
        x = block(n, x, acts)
    text = check_source(g.model(x))
    assert "        if self.act:\n" in text
    assert classes(text) == ["Block", "Model"]
