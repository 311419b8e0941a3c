"""How long generating takes as the graph grows: `python benchmarks/generate.py`.

Two graphs of each size: blocks of a dozen nodes in numbered scopes, as exporters leave
them, and the same nodes without any names.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.pipeline import generate

WIDTH = 8


def graph(blocks: int, scoped: bool) -> onnx.ModelProto:
    """Residual blocks of two layers, a table, and shape arithmetic: 12 nodes each."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> str:
        values = rng.normal(size=shape).astype(np.float32) / 4
        name = name if scoped else f"w{len(weights)}"
        weights.append(numpy_helper.from_array(values, name))
        return name

    def node(where: str, kind: str, *inputs: str, **attributes: object) -> str:
        made = f"v{len(nodes)}"
        name = f"/{where}/{kind}_{len(nodes)}" if scoped else ""
        nodes.append(helper.make_node(kind, inputs, [made], name, **attributes))
        return made

    weights.append(numpy_helper.from_array(np.array([0, 0, WIDTH]), "like"))
    x = "x"
    for n in range(blocks):
        path = f"layers.{n}"
        where = f"layers.{n}"
        y = node(where, "Mul", x, weight(f"{path}.scale", WIDTH))
        for part in ("fc1", "fc2"):
            inside = f"{where}/mlp/{part}"
            y = node(inside, "MatMul", y, weight(f"{path}.{part}.w", WIDTH, WIDTH))
            y = node(inside, "Add", y, weight(f"{path}.{part}.b", WIDTH))
            y = node(f"{where}/mlp", "Tanh", y)
        y = node(where, "Reshape", y, "like")
        gate = node(where, "Sigmoid", x)
        y = node(where, "Mul", y, gate)
        y = node(where, "Abs", y)
        x = node(where, "Add", x, y)
    shape = ["batch", 4, WIDTH]
    value = helper.make_tensor_value_info
    nodes.append(helper.make_node("Identity", [x], ["y"]))
    made = helper.make_graph(
        nodes,
        "stack",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
        weights,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)])


def seconds(model: onnx.ModelProto) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stack.onnx"
        onnx.save(model, path)
        start = time.perf_counter()
        generate(path)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--blocks", type=int, nargs="*", default=[50, 100, 200, 416, 4166]
    )
    for blocks in parser.parse_args().blocks:
        for scoped in (True, False):
            model = graph(blocks, scoped)
            took = seconds(model)
            kind = "scoped" if scoped else "bare"
            count = len(model.graph.node)
            print(f"{count:6d} nodes  {kind:6s}  {took:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
