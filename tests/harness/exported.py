"""Run an exported model: by onnxruntime where it is, else by ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from burnish.codegen import Exported
from tests.harness.reference import judged

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def ran(made: Exported, *given: Any) -> list[np.ndarray]:
    """The model's outputs for these inputs, in order."""
    return arrays(onnx.load_from_string(made.to_bytes()), *given)


def arrays(model: onnx.ModelProto, *given: Any) -> list[np.ndarray]:
    """A model's outputs for these inputs, in order."""
    feed = {
        value.name: np.asarray(each)
        for value, each in zip(model.graph.input, given, strict=True)
    }
    if onnxruntime is None:
        return judged(model, feed)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feed))
