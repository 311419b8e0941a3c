"""ONNX's reference evaluator as judge; tests are skipped where it is too old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from burnish.codegen.evaluator import EvaluatorError, evaluated


def judged(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """The outputs that the specification wants."""
    try:
        return evaluated(model, feeds)
    except EvaluatorError as error:
        pytest.skip(str(error))


def needs_onnx(major: int, minor: int, reason: str) -> pytest.MarkDecorator:
    """A mark for what an older onnx judges wrongly."""
    installed = tuple(map(int, onnx.__version__.split(".")[:2]))
    return pytest.mark.skipif(
        installed < (major, minor),
        reason=f"{reason}: needs onnx>={major}.{minor}, got {onnx.__version__}",
    )
