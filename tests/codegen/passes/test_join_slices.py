"""Layers on each slice of an axis run once on the whole axis, from three slices on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.harness.source import floats, graph, node, source_of


def unrolled(steps: int, axis: int = 1) -> onnx.ModelProto:
    """A Slice and a Squeeze for each step, a layer, and a Concat of the results."""
    held = {"fc.weight": floats(4, 2), "axis": np.array([axis])}
    nodes = []
    for n in range(steps):
        held |= {f"from{n}": np.array([n]), f"to{n}": np.array([n + 1])}
        nodes += [
            node("Slice", f"x from{n} to{n} axis", f"a{n}"),
            node("Squeeze", f"a{n} axis", f"b{n}"),
            node("MatMul", f"b{n} fc.weight", f"c{n}"),
            node("Tanh", f"c{n}", f"d{n}"),
            node("Unsqueeze", f"d{n} axis", f"e{n}"),
        ]
    joined = " ".join(f"e{n}" for n in range(steps))
    nodes.append(node("Concat", joined, "y", axis=axis))
    return graph(nodes, held, x=("batch", steps, 4))


@pytest.mark.parametrize(("steps", "calls"), [(2, 2), (3, 1), (5, 1)])
def test_three_slices_are_an_axis_and_two_are_a_pair(
    steps: int, calls: int, tmp_path: Path
) -> None:
    text, model = source_of(unrolled(steps), tmp_path)
    assert text.count("self.fc(") == calls, text
    x = floats(3, steps, 4, seed=1)
    np.testing.assert_allclose(
        np.asarray(model(x)), np.tanh(x @ floats(4, 2)), 1e-5, 1e-6
    )
