"""Golden inputs and outputs of a generated module, as text for its source."""

from __future__ import annotations

import base64
import io
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from burnish import seed
from burnish.codegen import feeds
from burnish.codegen.errors import ConversionError, VerifyError
from burnish.codegen.loaded import executed
from burnish.codegen.output.magnitude import magnitude
from burnish.codegen.weights.entries import Entry
from burnish.nn.core import tables
from burnish.selftest import drawn, sampled
from burnish.serialize import Weights

_COLUMNS = 88


def golden(
    graph: ir.Model,
    text: str,
    weights: Sequence[Entry],
    metadata: Mapping[str, str],
) -> str:
    """Lines of base64: an archive as `burnish.selftest` describes it.

    text: the module's source, without golden outputs. Raises ConversionError where it
    runs with no inputs that can be made up.
    """
    model = _loaded(text, weights, metadata)
    arrays: dict[str, Any]
    arrays, arguments = _inputs(graph, model)
    seed(0)
    first = _outputs(model, arguments)
    seed(1)
    again = _outputs(model, arguments)
    for i, (y, other) in enumerate(zip(first, again, strict=True)):
        arrays |= _kept(i, y, by_chance=not _same(y, other))
    archive = io.BytesIO()
    np.savez(archive, **arrays)
    data = base64.b64encode(archive.getvalue()).decode()
    return "\n".join(textwrap.wrap(data, _COLUMNS)) + "\n"


def _loaded(text: str, weights: Sequence[Entry], metadata: Mapping[str, str]) -> Any:
    """The module that a source makes, with its weights."""
    state: Any = {entry.path: entry.read().copy() for entry in weights}
    held = Weights(state, "the model", "arrays", metadata=metadata)
    with executed(text) as module:
        made = vars(module)["Model"]().load_state_dict(held)
        tables.restore(made, held)
    return made


def _inputs(graph: ir.Model, model: Any) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The inputs as recorded arrays, and as arguments: the first sizes that run."""
    problem: Exception | None = None
    for size in feeds.SIZES:
        try:
            made = feeds.make(graph, size=size, given={}, dims={}, seed=0)
            arrays, arguments = _spelled(list(made.values()))
            _outputs(model, arguments)
            return arrays, arguments
        except VerifyError as error:
            problem = error
            break
        except Exception as error:  # whatever arrays raise of a size
            problem = error
    raise ConversionError(
        f"--selftest: expected a model that runs on inputs of sizes {feeds.SIZES}, "
        f"got: {problem}; generate without it"
    ) from problem


def _spelled(
    inputs: Sequence[np.ndarray],
) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    arrays: dict[str, np.ndarray] = {}
    arguments = []
    for i, array in enumerate(inputs):
        if array.dtype.kind == "f":
            arrays[f"draw/{i}/{array.dtype}"] = np.array(array.shape, np.int64)
            arguments.append(drawn(i, array.shape, str(array.dtype)))
        else:
            text = array.dtype.kind == "O"
            arrays[f"input/{i}"] = array.astype(str) if text else array
            arguments.append(array)
    return arrays, arguments


def _outputs(model: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = model(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    if not all(hasattr(y, "numpy") for y in results):
        raise VerifyError("outputs that are sequences")
    return [np.asarray(y.numpy()) for y in results]


def _kept(number: int, y: np.ndarray, by_chance: bool) -> dict[str, np.ndarray]:
    """The recorded part of an output; only the shape of a random one."""
    at = f"output/{number}"
    arrays = {f"{at}/shape": np.array(y.shape, np.int64)}
    if by_chance:
        return arrays
    sample = sampled(y)
    numbers = y[np.isfinite(y)] if y.dtype.kind in "fc" else np.zeros(0)
    arrays[f"{at}/scale"] = np.array(magnitude(numbers), np.float64)
    arrays[f"{at}/sample"] = sample.astype(str) if y.dtype.kind == "O" else sample
    return arrays


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    kind = a.dtype.kind in "fc"
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=kind))
