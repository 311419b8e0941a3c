"""Layers that hand on two values, one of which is summed up over all: WaveNet."""

from __future__ import annotations

import re

import onnx
import pytest

from tests.harness.source import check_source, floats, graph, node
from tests.harness.strip import stripped


def wavenet(layers: int) -> onnx.ModelProto:
    """Gated convolutions with a residual and a skip; the last one has a skip alone."""
    nodes, weights, x, skips = [], {}, "x", ""
    for number in range(layers):
        at = f"layers.{number}"
        for part, size in (("conv", 3), ("res", 1), ("skip", 1)):
            weights[f"{at}.{part}.weight"] = floats(4, 4, size, seed=len(weights))
            weights[f"{at}.{part}.bias"] = floats(4, seed=len(weights))

        def conv(part: str, read: str, at: str = at, **given: object) -> str:
            name = f"/{at}/{part}/Conv_output_0"
            held = f"{read} {at}.{part}.weight {at}.{part}.bias"
            nodes.append(node("Conv", held, name, f"/{at}/{part}/Conv", **given))
            return name

        def put(kind: str, read: str, name: str, at: str = f"/{at}") -> str:
            nodes.append(node(kind, read, name, f"{at}/{kind}"))
            return name

        spread = 2 ** (number % 2)
        gate = conv("conv", x, pads=[spread, spread], dilations=[spread])
        gate = put("Tanh", gate, f"gate{number}")
        skip = conv("skip", gate)
        if number < layers - 1:
            x = put("Add", f"{x} {conv('res', gate)}", f"x{number}")
        else:
            del weights[f"{at}.res.weight"], weights[f"{at}.res.bias"]
        skips = put("Add", f"{skips} {skip}", f"sum{number}", "") if skips else skip
    nodes.append(node("Relu", skips, "y", "/Relu"))
    return graph(nodes, weights, x=(2, 4, 16))


def test_a_sum_over_all_layers_is_computed_in_their_loop() -> None:
    text = check_source(
        wavenet(6),
        """
        y, z = self.layers[0](x)
        for layer in self.layers[1:5]:
            u, z = layer(z)
            y = y + u
        return ops.relu(y + self.layers[5](z))
        """,
    )
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 3, text


def test_layers_with_skips_are_found_without_names() -> None:
    text = check_source(
        stripped(wavenet(6)),
        """
        for block in self.blocks[1:]:
            u, z = block(z)
            y = y + u
        """,
    )
    assert len(re.findall(r"^class ", text, re.MULTILINE)) == 2, text


@pytest.mark.parametrize("layers", [2, 3])
def test_few_layers_are_called_one_by_one(layers: int) -> None:
    assert "for " not in check_source(wavenet(layers))


def test_branches_that_are_summed_are_no_layers_with_skips() -> None:
    nodes, weights, x = [], {}, "x"
    for number in range(3):
        for part in ("a", "b", "c"):
            name = f"w{number}{part}"
            weights[name] = floats(4, 4, 1, seed=len(weights))
            nodes.append(node("Conv", f"{x} {name}", f"{part}{number}"))
        nodes.append(node("Add", f"a{number} b{number}", f"s{number}"))
        nodes.append(node("Add", f"s{number} c{number}", f"t{number}"))
        nodes.append(node("Relu", f"t{number}", x := f"x{number}"))
    check_source(
        graph(nodes, weights, outputs=x, x=(2, 4, 16)),
        "self.downsample3 = nn.Conv1d(4, 4, 1, bias=False)",
        "for block in self.blocks:",
    )


def test_layers_of_a_list_whose_forward_is_called_are_that_lists() -> None:
    nodes, weights, x = [], {}, "x"
    for number in range(3):
        again = f"_{number}" if number else ""
        at = f"encoder.layers.{number}.attention"
        for part in ("query", "out"):
            weights[f"{at}.{part}.weight"] = floats(4, 4, 1, seed=len(weights))
            name = f"/encoder/attention/{part}{again}/Conv"
            read = f"{x} {at}.{part}.weight"
            nodes.append(node("Conv", read, f"{part}{number}", name))
            x = f"{part}{number}"
            if part == "query":
                name = f"/encoder/attention{again}/Tanh"
                nodes.append(node("Tanh", x, x := f"tanh{number}", name))
    check_source(
        graph(nodes, weights, outputs=x, x=(2, 4, 16)),
        """
        def forward(self, x):
            return self.out(ops.tanh(self.query(x)))
        """,
        """
        self.layers = [Layer() for _ in range(3)]
        """,
    )
