"""The node cases of the onnx package, which computes them in seconds."""

from __future__ import annotations

import functools
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

from tests.harness.kept import kept

VERSIONS = [module.__version__ for module in (onnx, np, ml_dtypes)]


@functools.cache
def cases() -> dict[str, Any]:
    """Every node case by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "onnx_cases.pickle")
        found = pickle.loads(kept(VERSIONS, path, lambda: _write(path)).read_bytes())
    return {case.name: case for case in found}


def _write(path: Path) -> bool:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        path.write_bytes(pickle.dumps(collect_testcases(None), protocol=5))
    return True
