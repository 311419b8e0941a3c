"""Graphs of known forms in ONNX's text form: the source line that they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.harness.source import check_source


def form(
    text: str, *, opset: int = 18, weights: dict[str, Any] | None = None, **inputs: str
) -> onnx.ModelProto:
    """A model whose output is `y`; inputs are "2,3,8" (floats) or "bool[2,3]"."""
    listed = ", ".join(
        f"{shape if '[' in shape else f'float[{shape}]'} {name}"
        for name, shape in inputs.items()
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : {opset}]> '
        f"g ({listed}) => (float y) {{ {text} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for name, array in (weights or {}).items():
        tensor = numpy_helper.from_array(np.asarray(array), name)
        model.graph.initializer.append(tensor)
    return model


def becomes(model: onnx.ModelProto, *lines: str, **options: Any) -> str:
    """The source has these lines, and the numbers of the graph."""
    return check_source(model, *lines, **options)


def stays(model: onnx.ModelProto, *absent: str, **options: Any) -> str:
    """A near miss: the source has none of these words, and the graph's numbers."""
    source = check_source(model, **options)
    for word in absent:
        assert word not in source, source
    return source
