"""Print the table of estimators to docs/estimators.md: python -m tests.estimators

Needs scikit-learn, skl2onnx, onnxmltools, lightgbm, xgboost and onnxruntime.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import onnx

from tests.estimator_cases import (
    BOOSTED,
    ESTIMATORS,
    OPSETS,
    SKL2ONNX,
    fitted,
    of_variant,
)

PAGE = Path(__file__).parents[1] / "docs" / "estimators.md"
HEAD = """\
# Estimators

Models of scikit-learn, LightGBM and XGBoost: `skl2onnx.to_onnx(estimator, X[:1])`, or
`onnxmltools.convert_lightgbm` and `convert_xgboost`, writes an ONNX file, which
`burnish generate` converts like any other.

`python -m tests.estimators` fits each of these on 60 rows of 5 numbers, converts and
generates it, writes this table and fails where a class or a number differs from
onnxruntime's. The difference is the largest one between the numbers, relative to the
largest number or 1.

Trees are tables; all rows are evaluated together, by a kernel of the C library where it
was built (`burnish kernels build`), else by NumPy. `burnish.compile` evaluates them as
part of a plan. `python benchmarks/trees.py` compares complete trees on random rows with
onnxruntime 1.32, each on one thread of two cores of an AMD EPYC (Zen 5, AVX-512) that
others kept busy. Times are ratios to onnxruntime's, ranges over regressors and
classifiers in two runs:

| trees | rows | plan | kernel | NumPy |
| --- | ---: | ---: | ---: | ---: |
| 100 of 5 levels | 1 | 0.7 to 1.8 | 1.1 to 4.8 | 5 to 17 |
| 100 of 5 levels | 1,000 | 0.2 to 0.5 | 0.2 to 0.8 | 1.3 to 3.7 |
| 500 of 10 levels | 1 | 0.4 to 1.3 | 0.5 to 1.6 | 1.5 to 2.9 |
| 500 of 10 levels | 1,000 | 0.2 to 0.3 | 0.2 to 0.3 | 0.8 to 1 |

Trees whose numbers are float64 have the kernel too. Published regressors of
atspm-detector (gradient boosting, missing values go either way), 224 rows, processor
time beside onnxruntime's in one process on two cores of an AMD EPYC (Zen 4, AVX-512),
busy: 1.35 ms and 1.73 (355 trees, 25 features), 1.40 and 1.77 (508 features), 7.97
and 12.16 (229 features).

Small trees take microseconds, so that the call of a module outside of a plan takes most
of the time, 0.014 to 0.02 ms. By processor time, which others disturb less, a call for
one row takes 2.5 (regressor) and 2.6 times (classifier) onnxruntime's time.

`python benchmarks/estimators.py --own-time` compares estimators, compiled, with
onnxruntime 1.32: processor time in one process, one thread, on two cores of an AMD EPYC
(Zen 4, AVX-512), busy. onnxruntime's time divided by Burnish's, of 159 of those below:

| rows | geometric mean | median | 1 or more | under 0.8 |
| ---: | ---: | ---: | ---: | ---: |
| 1 | 0.91 | 1.00 | 96 | 29 |
| 1,000 | 0.87 | 0.84 | 65 | 75 |

What runs eagerly within them is slowest (0.02 to 0.22 for one row): strings, and the
float64 parts of support vector machines.

{versions}

| estimator | operators | greatest difference |
| --- | --- | --- |
"""


class Converted(NamedTuple):
    """A fitted estimator as a model file, and the rows that it is called with."""

    model: onnx.ModelProto
    rows: np.ndarray


def converted(name: str) -> Converted:
    """An estimator, fitted on rows that its name asks for."""
    module, _, kind = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator, rows = fitted(name)
        model = _to_onnx(module, kind, estimator, rows)
    return Converted(model, rows.astype(object) if rows.dtype.kind == "U" else rows)


def _to_onnx(
    module: str, kind: str, estimator: Any, rows: np.ndarray
) -> onnx.ModelProto:
    if module not in BOOSTED:
        skl2onnx = importlib.import_module("skl2onnx")
        with mock.patch.object(onnx.helper, "make_attribute", _attribute):
            opsets = OPSETS.get(type(estimator).__name__)
            options = of_variant(SKL2ONNX, kind)
            return skl2onnx.to_onnx(
                estimator,
                rows[:1],
                options={id(estimator): options} if options else None,
                target_opset=opsets,
            )
    tools = importlib.import_module("onnxmltools")
    types = importlib.import_module("onnxmltools.convert.common.data_types")
    convert = getattr(tools, f"convert_{module}")
    given = [("X", types.FloatTensorType([None, 5]))]
    return convert(estimator, initial_types=given, target_opset=15)


_made = onnx.helper.make_attribute


def _attribute(name: str, value: Any, *others: Any, **options: Any) -> Any:
    """An attribute; bools among its integers, which protobuf refuses, as integers.

    skl2onnx 1.20 has them where HistGradientBoosting sends missing values.
    """
    if isinstance(value, list):
        value = [int(v) if isinstance(v, bool | np.bool_) else v for v in value]
    return _made(name, value, *others, **options)


def difference(made: Converted) -> float:
    """How far results are from onnxruntime's; infinite where a class differs."""
    from burnish.codegen.backend import BurnishBackend

    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(made.model.SerializeToString(), options)
    name = session.get_inputs()[0].name
    expected = session.run(None, {name: made.rows})
    with np.errstate(all="ignore"):  # branches that Where takes nothing of
        results = BurnishBackend.run_model(made.model, [made.rows])
    pairs = zip(results, expected, strict=True)
    return max(_apart(y, wanted) for y, wanted in pairs)


def _apart(y: Any, wanted: Any) -> float:
    if isinstance(wanted, list) and not isinstance(wanted[0], dict):
        return max(_apart(*pair) for pair in zip(y, wanted, strict=True))
    y, wanted = _array(y), _array(wanted)
    if y.shape != wanted.shape or y.dtype != wanted.dtype:
        return np.inf
    if y.dtype.kind != "f":
        return 0.0 if (y == wanted).all() else np.inf
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    return float(np.abs(y - wanted).max(initial=0)) / scale


def _array(value: Any) -> np.ndarray:
    """Rows of probabilities by class, as ZipMap gives them, as an array."""
    if isinstance(value, list):
        return np.array([[row[key] for key in sorted(row)] for row in value])
    return np.asarray(value)


def row(name: str, made: Converted, apart: float) -> str:
    """A line of the table."""
    kinds = sorted({node.op_type for node in made.model.graph.node})
    module, _, kind = name.rpartition(".")
    shown = f"{apart:.0e}" if apart else "0"
    return f"| {kind} ({module}) | {', '.join(kinds)} | {shown} |\n"


def main() -> int:
    """Convert, generate and compare every estimator; 1 when one differs."""
    rows, wrong = [], []
    for name in ESTIMATORS:
        made = converted(name)
        apart = difference(made)
        rows.append(row(name, made, apart))
        if apart > 1e-4:
            wrong.append(name)
    packages = {"scikit-learn": "sklearn"} | {
        name: name for name in ("skl2onnx", "onnxmltools", "lightgbm", "xgboost")
    }
    versions = ", ".join(
        f"{shown} {importlib.import_module(name).__version__}"
        for shown, name in packages.items()
    )
    versions = textwrap.fill(f"Versions: {versions}.", 88, break_on_hyphens=False)
    PAGE.write_text(HEAD.format(versions=versions) + "".join(rows))
    print(f"{len(rows) - len(wrong)} of {len(rows)} agree: {PAGE.name}", *wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
