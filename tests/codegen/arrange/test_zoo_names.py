"""Caffe's and MXNet's zoos: names that are no scopes, blocks with branches joined."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.harness.source import check_source


class Zoo:
    """Nodes and weights with the names that a framework gives them."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def weight(self, name: str, values: Any) -> str:
        array = np.asarray(values, np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def __call__(self, kind: str, name: str, *read: str, **given: Any) -> str:
        self.nodes.append(helper.make_node(kind, read, [name], name, **given))
        return name

    def conv(
        self, name: str, x: str, sizes: tuple[int, int], k: int = 1, stride: int = 1
    ) -> str:
        before, after = sizes
        values = self.rng.normal(size=(after, before, k, k)) / (k * before**0.5)
        read = [x, self.weight(f"{name}_weight", values)]
        pads, strides = [k // 2] * 4, [stride] * 2
        return self("Conv", name, *read, pads=pads, strides=strides)

    def normed(self, name: str, x: str, sizes: tuple[int, int], k: int = 1) -> str:
        y = self.conv(name, x, sizes, k)
        parts = {"gamma": 1.5, "beta": 0.1, "moving_mean": 0.2, "moving_var": 0.7}
        made = (
            self.weight(f"{name}_{p}", v + self.rng.random(sizes[1]) / 9)
            for p, v in parts.items()
        )
        y = self("BatchNormalization", f"{name}_bn", y, *made)
        return self("Relu", f"{name}_relu", y)

    def pool(self, name: str, x: str, stride: int = 2) -> str:
        given = {"kernel_shape": [3, 3], "strides": [stride] * 2, "pads": [1] * 4}
        return self("MaxPool", name, x, **given)

    def model(self, y: str) -> onnx.ModelProto:
        y = self("GlobalAveragePool", "pool", y)
        x = helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 16, 16])
        end = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", [x], [end], self.weights)
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def fires() -> onnx.ModelProto:
    """SqueezeNet: a run of fire modules may also be cut before the squeeze's end."""
    net = Zoo()
    x, width = net("Relu", "relu_conv1", net.conv("conv1", "data", (3, 8), 3)), 8
    for number, (thin, wide) in enumerate([(2, 8), (2, 8), (4, 16), (4, 16)] * 2, 2):
        if number in (4, 6):
            x = net.pool(f"pool{number}", x)
        path = f"fire{number}/"
        x = net.conv(f"{path}squeeze1x1", x, (width, thin))
        x = net("Relu", f"{path}relu_squeeze1x1", x)
        ends = [net.conv(f"{path}expand{k}x{k}", x, (thin, wide), k) for k in (1, 3)]
        ends = [net("Relu", f"{end}_relu", end) for end in ends]
        x, width = net("Concat", f"{path}concat", *ends, axis=1), 2 * wide
    return net.model(net("Relu", "relu10", net.conv("conv10", x, (width, 5))))


def inceptions() -> onnx.ModelProto:
    net = Zoo()
    x, width = net.normed("conv1", "data", (3, 8), 3), 8
    for block in ("3a", "3b", "4a", "4b"):
        if block == "4a":
            x = net.pool("pool3", x)
        path = f"inception_{block}/"
        ends = [net.normed(f"{path}1x1", x, (width, 4))]
        y = net.normed(f"{path}3x3_reduce", x, (width, 2))
        ends.append(net.normed(f"{path}3x3", y, (2, 6), 3))
        y = net.pool(f"{path}pool", x, stride=1)
        ends.append(net.normed(f"{path}pool_proj", y, (width, 3)))
        x, width = net("Concat", f"{path}output", *ends, axis=1), 13
    return net.model(x)


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], list[str], list[str]]] = {
    "fire modules": (
        fires,
        ["ConvBlock", "Model"],
        ["self.stage1 = nn.Sequential(ConvBlock(8, 2, 8), ConvBlock(16, 2, 8))"],
    ),
    "inception modules": (
        inceptions,
        ["ConvBNReLU", "Inception", "Model"],
        ["self.conv1 = ConvBNReLU(in_channels, 4, 1)"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_modules_come_back(case: str) -> None:
    build, classes, lines = CASES[case]
    text = check_source(build())
    assert re.findall(r"^class (\w+)", text, re.MULTILINE) == classes, text
    for line in lines:
        assert line in text, text
