"""A model file in modules and, as `--flat` has it, in one class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burnish.codegen.pipeline import Options, generate, write
from tests.harness.imported import load_class


def both_forms(path: Path, folder: Path) -> list[Any]:
    """The file's model in modules and in one class."""
    made = []
    for name, flat in (("whole", False), ("flat", True)):
        generated = generate(path, Options(name=name, flat=flat))
        assert generated.text.count("\nclass ") == 1 or not flat
        write(generated, folder)
        weights = (
            folder / f"{name}.safetensors"
            if generated.weights or generated.metadata
            else None
        )
        made.append(load_class(folder / f"{name}.py").from_file(weights))
    return made


def same_numbers(models: Sequence[Any], given: Sequence[Any]) -> list[np.ndarray]:
    """The result of both forms, which is the same to the last bit.

    But for rounding, where operators have come back as one layer: PyTorch's attention
    multiplies matrices of other shapes than the file does.
    """
    found = [_arrays(model(*given)) for model in models]
    rounds = "MultiheadAttention" in repr(models[0])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        apart = np.abs(np.subtract(one, other, dtype=np.float64)).max() if rounds else 0
        if not 0 < apart < 1e-6 * np.abs(other).max():
            np.testing.assert_array_equal(one, other)
    return found[0]


def _arrays(result: Any) -> list[np.ndarray]:
    return [np.asarray(y) for y in (result if isinstance(result, tuple) else (result,))]
