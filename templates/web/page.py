"""Turn what the page sends into arrays, and what the model answers into JSON."""

import io
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import app
import numpy as np

Input = dict[str, Any]
Sizes = dict[str, int]

SHOWN = 10
"""Scores that are listed, and numbers of other outputs."""
LARGEST_PICTURE = 4096


def about() -> str:
    """The versions that compute."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"Python {python}, NumPy {np.__version__}"


def answer(inputs: Any, sizes: Any) -> str:
    """JSON of the outputs for inputs as the page describes them, or of their error.

    inputs: by name, an object with `kind`, `dtype` and `shape` (sizes and names) and
    with `pixels`, `text` or `file`. sizes: of the names where no input decides.
    """
    # no exception leaves: Pyodide 0.27 may free one while it becomes JavaScript's
    try:
        outputs = _outputs(inputs.to_py(), sizes.to_py())
        return json.dumps({"outputs": outputs})
    except Exception as error:
        message = traceback.format_exception_only(error)[-1].strip()
        return json.dumps({"message": message, "details": traceback.format_exc()})


def _outputs(inputs: dict[str, Input], sizes: Sizes) -> list[dict[str, Any]]:
    arrays = {}
    for name, each in inputs.items():
        if each["kind"] != "derived":
            arrays[name] = _READERS[each["kind"]](name, each, sizes)
            _learn(sizes, each["shape"], arrays[name].shape)
    for name, each in inputs.items():
        if each["kind"] == "derived":
            arrays[name] = _derived(each, sizes)
    return [_described(*named) for named in _named(app.predict(**arrays))]


# --- inputs ---


def _picture(name: str, each: Input, sizes: Sizes) -> np.ndarray:
    """Values 0 to 1, or 0 to 255 for whole numbers, in the axes of the model."""
    height, width = each["height"], each["width"]
    pixels = np.asarray(each["pixels"]).reshape(height, width, 4)[..., :3]
    channels = each["channels"]
    if channels == 1:
        pixels = (pixels @ np.array([0.299, 0.587, 0.114])).round()[..., None]
    dtype = np.dtype(each["dtype"])
    values = pixels / 255 if dtype.kind == "f" else pixels
    axes = {"CHW": (2, 0, 1), "HWC": (0, 1, 2)}.get(each["layout"])
    values = values.transpose(axes) if axes else values[..., 0]
    values = values.reshape((1,) * (len(each["shape"]) - values.ndim) + values.shape)
    return np.ascontiguousarray(values, dtype=dtype)


def _numbers(name: str, each: Input, sizes: Sizes) -> np.ndarray:
    shape, dtype = each["shape"], np.dtype(each["dtype"])
    if "file" in each:
        return np.load(io.BytesIO(bytes(each["file"])), allow_pickle=False)
    text = each["text"].strip()
    if not text:
        return _random([sizes.get(size, size) for size in shape], dtype)
    if text.startswith("["):
        values = np.array(json.loads(text))
    else:
        words = text.replace(",", " ").replace(";", " ").split()
        values = np.array([float(word) for word in words])
    values = values.astype(dtype)
    return values if values.ndim == len(shape) else _shaped(name, values, shape, sizes)


def _shaped(
    name: str, values: np.ndarray, shape: list[int | str], sizes: Sizes
) -> np.ndarray:
    """A list of numbers in the axes of the input; one open axis takes what is left."""
    fixed = [size if isinstance(size, int) else 1 for size in shape]
    open_axes = [
        axis
        for axis, size in enumerate(shape)
        if not isinstance(size, int) and not str(size).startswith("batch")
    ]
    for axis in open_axes[:-1]:
        fixed[axis] = sizes.get(str(shape[axis]), 1)
    if open_axes:
        fixed[open_axes[-1]] = -1
    try:
        return values.reshape(fixed)
    except ValueError:
        spelled = " x ".join(map(str, shape)) or "one number"
        raise ValueError(
            f"{name}: expected numbers for {spelled}, got {values.size}"
        ) from None


def _random(shape: list[int], dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.integers(0, 2, shape)).astype(dtype)


def _derived(each: Input, sizes: Sizes) -> np.ndarray:
    shape = [sizes.get(size, size) for size in each["shape"]]
    if each["fill"] == "positions":
        return np.broadcast_to(np.arange(shape[-1]), shape).astype(each["dtype"])
    return np.full(shape, each["fill"] == "ones", each["dtype"])


def _learn(sizes: Sizes, names: list[int | str], shape: tuple[int, ...]) -> None:
    sizes.update(
        (name, size)
        for name, size in zip(names, shape, strict=False)
        if isinstance(name, str)
    )


_READERS = {"picture": _picture, "ids": _numbers, "numbers": _numbers}

# --- outputs ---


def _named(outputs: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Every array of the outputs with its place among them."""
    if isinstance(outputs, Mapping):
        for key, value in outputs.items():
            yield from _named(value, f"{name}.{key}" if name else str(key))
    elif isinstance(outputs, (tuple, list)):
        for number, value in enumerate(outputs):
            yield from _named(value, f"{name}[{number}]" if name else str(number))
    elif outputs is not None:
        yield name, np.asarray(outputs)


def _described(name: str, values: np.ndarray) -> dict[str, Any]:
    found = {"name": name, "shape": list(values.shape), "dtype": str(values.dtype)}
    rows = values.reshape(-1, values.shape[-1]) if values.ndim else values[None, None]
    if _are_scores(values, rows):
        return found | _scores(rows[-1])
    if _is_picture(values):
        return found | {"picture": _as_picture(values)}
    if values.size and values.dtype.kind in "fiu":
        numbers = values.astype(np.float64)
        found["range"] = [_number(f(numbers)) for f in (np.min, np.mean, np.max)]
    first = values.reshape(-1)[:SHOWN].tolist()
    return found | {"first": [_number(v) for v in first]}


def _are_scores(values: np.ndarray, rows: np.ndarray) -> bool:
    """One row of classes, or a row for each token, of which the last is shown."""
    if values.dtype.kind != "f" or values.ndim not in (1, 2, 3) or not rows.size:
        return False
    if not np.isfinite(rows[-1]).all():
        return False
    return (len(rows) == 1 and values.shape[-1] >= 2) or (
        values.ndim == 3 and values.shape[-1] > 1000
    )


def _scores(row: np.ndarray) -> dict[str, Any]:
    """The largest, as probabilities, with their labels; softmax: they were logits."""
    row = row.astype(np.float64)
    logits = row.min() < 0 or not np.isclose(row.sum(), 1, atol=1e-3)
    if logits:
        row = np.exp(row - row.max())
        row /= row.sum()
    order = np.argsort(-row, kind="stable")[:SHOWN]
    if len(row) <= SHOWN:
        order = np.arange(len(row))
    labels = list(app.LABELS)
    scores = [
        {"label": str(labels[i]) if i < len(labels) else str(i), "share": row[i]}
        for i in order.tolist()
    ]
    return {"scores": scores, "softmax": bool(logits)}


def _is_picture(values: np.ndarray) -> bool:
    if values.dtype.kind != "f" or values.ndim not in (3, 4):
        return False
    *batch, channels, height, width = (1, *values.shape)[-4:]
    return (
        batch == [1]
        and channels in (1, 3)
        and min(height, width) >= 16
        and (max(height, width) <= LARGEST_PICTURE)
    )


def _as_picture(values: np.ndarray) -> dict[str, Any]:
    values = values.reshape(values.shape[-3:]).transpose(1, 2, 0).astype(np.float64)
    low, high = values.min(), values.max()
    if low < 0 or high > 1:
        values = (values - low) / ((high - low) or 1)
    pixels = np.full((*values.shape[:2], 4), 255, np.uint8)
    pixels[..., :3] = (values * 255).round()
    height, width = values.shape[:2]
    return {"height": height, "width": width, "pixels": pixels.reshape(-1).tolist()}


def _number(value: Any) -> Any:
    """A number that JSON has."""
    if isinstance(value, (bool, int, str)):
        return value
    value = float(value)
    return value if np.isfinite(value) else str(value)
