"""The self-test of a generated module: golden inputs and outputs that it carries.

    python -m my_app.models.resnet18 --selftest [--weights FILE]

`GOLDEN` in the source is base64 of a NumPy archive. "input/i" is an input; "draw/i/D"
is the shape of one of dtype D that `RandomState(i)` draws, whose numbers are the same
in every NumPy. Of each output there are its shape, its largest magnitude, and up to 256
elements at equal distances: "output/i/shape", "output/i/scale", "output/i/sample".
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from burnish.errors import BurnishError

KEPT = 256
"""Elements of an output that are compared."""

RTOL = {"float16": 1e-2}
USUAL = 1e-4
"""The default tolerance, relative to an output's largest magnitude."""


def main(model: Any, golden: str) -> NoReturn:
    """Run the self-test as a command; exits with 0, 1 where it fails, 2 for misuse."""
    import argparse

    parser = argparse.ArgumentParser(description="A generated model.")
    parser.add_argument(
        "--selftest",
        action="store_true",
        required=True,
        help="compute golden outputs again, and compare",
    )
    parser.add_argument(
        "--weights", metavar="FILE", help="its weights (default: those it came with)"
    )
    options = parser.parse_args()
    try:
        made = (
            model.from_file(options.weights)
            if options.weights
            else model.from_embedded()
        )
        lines, agrees = compared(made, golden)
    except (BurnishError, OSError) as error:
        lines, agrees = [f"{type(error).__name__}: {error}"], False
    for line in lines:
        print(line, file=sys.stdout if agrees else sys.stderr)
    print(f"selftest {'passed' if agrees else 'FAILED'}: NumPy {np.__version__}")
    sys.exit(0 if agrees else 1)


def compared(model: Any, golden: str) -> tuple[list[str], bool]:
    """A line for each output of a model, and whether all are as they were."""
    with np.load(io.BytesIO(base64.b64decode(golden)), allow_pickle=False) as held:
        recorded = {name: held[name] for name in held.files}
    results = model(*inputs(recorded))
    results = results if isinstance(results, tuple) else (results,)
    wanted = {name.split("/")[1] for name in recorded if name.startswith("output/")}
    if len(results) != len(wanted):
        return [f"expected {len(wanted)} outputs, got {len(results)}"], False
    reports = [
        _report(i, np.asarray(y.numpy()), recorded) for i, y in enumerate(results)
    ]
    return [line for line, _ in reports], all(fits for _, fits in reports)


def inputs(recorded: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The arguments of the call, drawn or as they are kept."""
    found: dict[int, np.ndarray] = {}
    for name, array in recorded.items():
        kind, number, *dtype = name.split("/")
        if kind == "input":
            found[int(number)] = _as_text(array)
        elif kind == "draw":
            found[int(number)] = drawn(int(number), tuple(array.tolist()), dtype[0])
    return [found[i] for i in sorted(found)]


def drawn(number: int, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Normal numbers that every NumPy draws alike."""
    values = np.random.RandomState(number).standard_normal(tuple(shape))
    return np.asarray(values).astype(dtype)


def sampled(output: np.ndarray) -> np.ndarray:
    """Elements at equal distances, all where there are few."""
    return output.reshape(-1)[:: max(1, -(-output.size // KEPT))]


def _report(
    number: int, got: np.ndarray, recorded: Mapping[str, np.ndarray]
) -> tuple[str, bool]:
    """The report line of an output, and whether it is as expected."""
    at = f"output/{number}"
    where = f"output {number}: {got.dtype}{list(got.shape)}"
    shape = recorded[f"{at}/shape"].tolist()
    if list(got.shape) != shape:
        return f"{where}, expected shape {shape}", False
    if f"{at}/sample" not in recorded:
        return f"{where}, drawn by chance: its shape is right", True
    wanted, scale = _as_text(recorded[f"{at}/sample"]), float(recorded[f"{at}/scale"])
    if got.dtype != wanted.dtype:
        return f"{where}, expected {wanted.dtype}", False
    mine = sampled(got)
    if got.dtype.kind not in "fc":
        differ = int((mine != wanted).sum())
        return f"{where}, {differ} of {mine.size} elements differ", differ == 0
    finite = np.isfinite(wanted)
    if not np.array_equal(mine[~finite], wanted[~finite], equal_nan=True):
        return f"{where}, infinities or NaNs stand elsewhere", False
    limit = RTOL.get(str(got.dtype), USUAL) * scale
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    apart = np.abs(mine[finite].astype(wide) - wanted[finite].astype(wide))
    far = float(apart.max(initial=0.0))
    line = f"{where}, largest difference {far:.1e}, limit {limit:.1e}"
    return line, far <= limit


def _as_text(array: np.ndarray) -> np.ndarray:
    """Strings as arrays of objects, as tensors have them."""
    return array.astype(object) if array.dtype.kind == "U" else array
