"""Print the table of estimators to docs/estimators.md: python -m tests.estimators

Needs scikit-learn, skl2onnx, onnxmltools, lightgbm, xgboost and onnxruntime.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import onnx

PAGE = Path(__file__).parents[1] / "docs" / "estimators.md"
KINDS = {
    "calibration": "CalibratedClassifierCV",
    "cluster": "KMeans MiniBatchKMeans",
    "cross_decomposition": "PLSRegression",
    "decomposition": "IncrementalPCA KernelPCA PCA TruncatedSVD",
    "discriminant_analysis": (
        "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis"
    ),
    "ensemble": (
        "AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor "
        "ExtraTreesClassifier ExtraTreesRegressor GradientBoostingClassifier "
        "GradientBoostingRegressor HistGradientBoostingClassifier "
        "HistGradientBoostingRegressor IsolationForest RandomForestClassifier "
        "RandomForestRegressor"
    ),
    "feature_extraction.text": "TfidfTransformer",
    "feature_selection": "SelectKBest SelectPercentile VarianceThreshold",
    "gaussian_process": "GaussianProcessRegressor",
    "impute": "KNNImputer SimpleImputer",
    "linear_model": (
        "BayesianRidge ElasticNet HuberRegressor Lasso LinearRegression "
        "LogisticRegression Perceptron RANSACRegressor Ridge RidgeClassifier "
        "SGDClassifier SGDOneClassSVM SGDRegressor TweedieRegressor"
    ),
    "mixture": "BayesianGaussianMixture GaussianMixture",
    "naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "neighbors": (
        "KNeighborsClassifier KNeighborsRegressor KNeighborsTransformer "
        "NeighborhoodComponentsAnalysis"
    ),
    "neural_network": "MLPClassifier MLPRegressor",
    "preprocessing": (
        "Binarizer MaxAbsScaler MinMaxScaler Normalizer OrdinalEncoder "
        "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler "
        "StandardScaler"
    ),
    "svm": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
    "tree": (
        "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier "
        "ExtraTreeRegressor"
    ),
}
"""Estimators of scikit-learn by their module, each as its constructor has it."""

BOOSTED = {
    "lightgbm": ("LGBMClassifier", "LGBMRegressor"),
    "xgboost": ("XGBClassifier", "XGBRegressor"),
}
"""Those that onnxmltools converts."""

ESTIMATORS = [
    *(
        f"sklearn.{module}.{n}"
        for module, every in KINDS.items()
        for n in every.split()
    ),
    *(f"{module}.{name}" for module, every in BOOSTED.items() for name in every),
]
COUNTS = frozenset(("CategoricalNB", "ComplementNB", "MultinomialNB"))
"""Estimators of counts, which are never negative."""

OPSETS = {"IsolationForest": {"": 20, "ai.onnx.ml": 3}}
"""Those for which skl2onnx needs the opsets as an argument."""

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
was built (`burnish kernels build`), else by NumPy. A random forest of 500 trees and 2.6
million nodes, a file of 103 MB, is generated in 13 s. Against onnxruntime 1.32, both on
one core of an AMD EPYC (Zen 4), it takes 1 to 1.5 times as long for one row, and for
1,000 rows 0.3 times with the kernel and 0.9 times without. A hundred trees take one row
0.05 to 0.1 ms in onnxruntime and 0.2 ms here, half of it for the module call.

Versions: {versions}.

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
    quiet = {"verbose": -1} if module == "lightgbm" else {}
    estimator = getattr(importlib.import_module(module), kind)(**quiet)
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 5)).astype(np.float32)
    classes = (rows[:, 0] + rows[:, 1] > 0).astype(np.int64) + (rows[:, 2] > 0.8)
    if kind in COUNTS:
        rows = np.abs(rows).round()
    is_regressor = importlib.import_module("sklearn.base").is_regressor(estimator)
    target = rows[:, 0] * 2 + rows[:, 1] if is_regressor else classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(rows, target)
        return Converted(_to_onnx(module, estimator, rows), rows)


def _to_onnx(module: str, estimator: Any, rows: np.ndarray) -> onnx.ModelProto:
    if module not in BOOSTED:
        skl2onnx = importlib.import_module("skl2onnx")
        with mock.patch.object(onnx.helper, "make_attribute", _attribute):
            opsets = OPSETS.get(type(estimator).__name__)
            return skl2onnx.to_onnx(estimator, rows[:1], target_opset=opsets)
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
    PAGE.write_text(HEAD.format(versions=versions) + "".join(rows))
    print(f"{len(rows) - len(wrong)} of {len(rows)} agree: {PAGE.name}", *wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
