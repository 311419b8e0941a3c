"""Weights written back into their graph, run by onnxruntime and by the module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import load_external_data_for_model

from burnish.codegen import feeds
from burnish.codegen.readers import read
from burnish.codegen.writers import Written, onto
from burnish.nn import Module


def run(path: Path, fed: dict[str, np.ndarray]) -> list[Any]:
    """The outputs of onnxruntime for a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options)
    return session.run(None, fed)  # type: ignore[no-any-return]


def inputs(path: Path, size: int = 2, **dims: int) -> dict[str, np.ndarray]:
    """Random ones, as `burnish verify` draws them."""
    return feeds.make(read(path).model, size=size, given={}, dims=dims, seed=0)


def whole(path: Path) -> onnx.ModelProto:
    """A file with its external data, as if it were all in one."""
    model = onnx.load(path, load_external_data=False)
    load_external_data_for_model(model, str(path.parent))
    for tensor in model.graph.initializer:
        tensor.ClearField("data_location")
        tensor.ClearField("external_data")
    return model


def check_unchanged(module: Module, path: Path, folder: Path) -> None:
    """Weights as they were give the very same model."""
    module.save_file(folder / "same.safetensors")
    written = onto(folder / "same.safetensors", path, folder / "same.onnx")
    assert written.changed == 0
    assert whole(folder / "same.onnx") == whole(path)


def perturbed(module: Module, seed: int = 0) -> None:
    """Give every parameter and saved floating-point buffer other numbers."""
    saved = module.state_dict()
    draw = np.random.default_rng(seed)
    for path, item in module.named_tensors():
        before = np.asarray(item.data)
        if before.dtype.kind == "f" and path in saved:
            # shares of both signs: variances stay positive, deep networks finite
            share = draw.uniform(0.01, 0.1, before.shape) * draw.choice(
                (-1, 1), before.shape
            )
            tuned = np.where(before == 0, share, before * (1 + share))
            item.assign(tuned.astype(before.dtype))


def check_tuned(
    module: Module, path: Path, folder: Path, fed: dict[str, np.ndarray]
) -> Written:
    """Other weights give onnxruntime the module's numbers."""
    perturbed(module)
    module.save_file(folder / "tuned.safetensors")
    written = onto(folder / "tuned.safetensors", path, folder / "tuned.onnx")
    onnx.checker.check_model(folder / "tuned.onnx", full_check=True)
    expected, was = run(folder / "tuned.onnx", fed), run(path, fed)
    found = module(*fed.values())
    found = found if isinstance(found, tuple | list) else (found,)
    different = False
    for mine, theirs, before in zip(found, expected, was, strict=True):
        scale = np.abs(theirs).max() if np.size(theirs) else 0
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6 + 2e-4 * scale)
        different |= not np.array_equal(theirs, before)
    assert different
    return written
