"""The estimators of docs/estimators.md: how each is made, and on what it is fitted."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

KINDS = {
    "calibration": "CalibratedClassifierCV",
    "cluster": "KMeans MiniBatchKMeans",
    "compose": "ColumnTransformer",
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
        "RandomForestRegressor RandomTreesEmbedding StackingClassifier "
        "StackingRegressor VotingClassifier VotingRegressor"
    ),
    "feature_extraction.text": "CountVectorizer TfidfTransformer TfidfVectorizer",
    "feature_selection": (
        "GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel "
        "SelectFwe SelectKBest SelectPercentile VarianceThreshold"
    ),
    "gaussian_process": "GaussianProcessRegressor",
    "impute": "KNNImputer SimpleImputer",
    "linear_model": (
        "ARDRegression BayesianRidge ElasticNet ElasticNetCV GammaRegressor "
        "HuberRegressor Lars LarsCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC "
        "LinearRegression LogisticRegression LogisticRegressionCV MultiTaskElasticNet "
        "MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV "
        "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV "
        "PassiveAggressiveClassifier PassiveAggressiveRegressor Perceptron "
        "PoissonRegressor QuantileRegressor RANSACRegressor Ridge RidgeCV "
        "RidgeClassifier RidgeClassifierCV SGDClassifier SGDOneClassSVM SGDRegressor "
        "TheilSenRegressor TweedieRegressor"
    ),
    "mixture": "BayesianGaussianMixture GaussianMixture",
    "model_selection": "GridSearchCV TunedThresholdClassifierCV",
    "multiclass": "OneVsOneClassifier OneVsRestClassifier",
    "multioutput": "MultiOutputClassifier MultiOutputRegressor",
    "naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "neighbors": (
        "KNeighborsClassifier KNeighborsRegressor KNeighborsTransformer "
        "LocalOutlierFactor NeighborhoodComponentsAnalysis RadiusNeighborsClassifier "
        "RadiusNeighborsRegressor"
    ),
    "neural_network": "MLPClassifier MLPRegressor",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing": (
        "Binarizer FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder "
        "MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder "
        "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler "
        "StandardScaler TargetEncoder"
    ),
    "random_projection": "GaussianRandomProjection",
    "svm": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
    "tree": (
        "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier "
        "ExtraTreeRegressor"
    ),
}
"""Estimators of scikit-learn by their module."""

BOOSTED = {
    "lightgbm": ("LGBMClassifier", "LGBMRegressor"),
    "xgboost": (
        *("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
    ),
}
"""Those that onnxmltools converts."""

VARIANTS = (
    "sklearn.calibration.CalibratedClassifierCV, isotonic",
    "sklearn.ensemble.ExtraTreesClassifier, decision_path",
    "sklearn.ensemble.GradientBoostingClassifier, two classes",
    "sklearn.ensemble.HistGradientBoostingClassifier, two classes",
    "sklearn.ensemble.HistGradientBoostingRegressor, counts",
    "sklearn.ensemble.RandomForestClassifier, two classes",
    "sklearn.ensemble.RandomForestRegressor, decision_leaf",
    "sklearn.gaussian_process.GaussianProcessRegressor, return_std",
    "sklearn.linear_model.LogisticRegression, two classes",
    "sklearn.mixture.GaussianMixture, tied",
    "sklearn.neighbors.KNeighborsClassifier, distance",
    "sklearn.svm.SVC, probability",
    "sklearn.tree.DecisionTreeClassifier, decision_path",
    "lightgbm.LGBMClassifier, two classes",
    "lightgbm.LGBMClassifier, dart",
    "lightgbm.LGBMRegressor, forest",
    "lightgbm.LGBMRegressor, counts",
    "xgboost.XGBClassifier, two classes",
    "xgboost.XGBRegressor, counts",
    "xgboost.XGBRegressor, two targets",
)
"""Estimators with other options, of other targets, or converted with an option."""

ESTIMATORS = [
    *(
        f"sklearn.{module}.{n}"
        for module, every in KINDS.items()
        for n in every.split()
    ),
    *(f"{module}.{name}" for module, every in BOOSTED.items() for name in every),
    *VARIANTS,
]

OPSETS = {"IsolationForest": {"": 20, "ai.onnx.ml": 3}}
"""Those for which skl2onnx asks to be told the opsets."""

SKL2ONNX: dict[str, dict[str, Any]] = {
    "CountVectorizer": {"locale": "C"},
    "TfidfVectorizer": {"locale": "C"},
    "ExtraTreesClassifier, decision_path": {"decision_path": True, "zipmap": False},
    "RandomForestRegressor, decision_leaf": {"decision_leaf": True},
    "GaussianProcessRegressor, return_std": {"return_std": True},
    "DecisionTreeClassifier, decision_path": {"decision_path": True, "zipmap": False},
}
"""Options of the conversion: machines of CI have no other locale."""

COUNTS = frozenset(("CategoricalNB", "ComplementNB", "MultinomialNB"))
"""Estimators of counts, which are never negative."""

_TEXTS = frozenset(("CountVectorizer", "TfidfVectorizer"))
_WORDS = frozenset(("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"))
_LABELS = frozenset(("LabelBinarizer", "LabelEncoder"))
_OF_TWO_CLASSES = frozenset(("TargetEncoder", "TunedThresholdClassifierCV"))
_POSITIVE = frozenset(("GammaRegressor", "PoissonRegressor"))
_SEVERAL = ("MultiTask", "MultiOutput")


def _made(kind: str, *args: Any, **options: Any) -> Any:
    """An estimator of scikit-learn by its module and name."""
    module, _, name = kind.rpartition(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), name)(*args, **options)


def _classifier() -> Any:
    return _made("linear_model.LogisticRegression")


def _classifiers() -> list[tuple[str, Any]]:
    tree = _made("tree.DecisionTreeClassifier", max_depth=3, random_state=0)
    return [("linear", _classifier()), ("tree", tree)]


def _regressors() -> list[tuple[str, Any]]:
    tree = _made("tree.DecisionTreeRegressor", max_depth=3, random_state=0)
    return [("linear", _made("linear_model.Ridge")), ("tree", tree)]


def _scaled() -> tuple[str, Any]:
    return ("scaled", _made("preprocessing.StandardScaler"))


_ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "ColumnTransformer": lambda: (
        [
            (*_scaled(), [0, 1]),
            ("bounded", _made("preprocessing.MinMaxScaler"), [2, 4]),
        ],
    ),
    "StackingClassifier": lambda: (_classifiers(),),
    "StackingRegressor": lambda: (_regressors(),),
    "VotingClassifier": lambda: (_classifiers(),),
    "VotingRegressor": lambda: (_regressors(),),
    "RFE": lambda: (_classifier(),),
    "RFECV": lambda: (_classifier(),),
    "SelectFromModel": lambda: (_classifier(),),
    "GridSearchCV": lambda: (_classifier(), {"C": [0.1, 1.0]}),
    "TunedThresholdClassifierCV": lambda: (_classifier(),),
    "OneVsOneClassifier": lambda: (_classifier(),),
    "OneVsRestClassifier": lambda: (_classifier(),),
    "MultiOutputClassifier": lambda: (_classifier(),),
    "MultiOutputRegressor": lambda: (_made("linear_model.Ridge"),),
    "FeatureUnion": lambda: ([_scaled(), ("main", _made("decomposition.PCA", 2))],),
    "Pipeline": lambda: ([_scaled(), ("linear", _classifier())],),
    "GaussianRandomProjection": lambda: (3,),
}
"""What constructors that ask for anything get."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "CalibratedClassifierCV, isotonic": {"method": "isotonic"},
    "ColumnTransformer": {"remainder": "passthrough"},
    # variances are differences: they need noise and a kernel of the size of the data
    "GaussianProcessRegressor, return_std": {"alpha": 0.1, "optimizer": None},
    "GaussianMixture, tied": {"covariance_type": "tied", "n_components": 2},
    "HistGradientBoostingRegressor, counts": {"loss": "poisson"},
    "KNeighborsClassifier, distance": {"weights": "distance"},
    "KBinsDiscretizer": {"encode": "onehot-dense"},
    "LGBMClassifier": {"verbose": -1},
    "LGBMClassifier, dart": {"verbose": -1, "boosting_type": "dart"},
    "LGBMRegressor": {"verbose": -1},
    "LGBMRegressor, counts": {"verbose": -1, "objective": "poisson"},
    "LGBMRegressor, forest": {
        **{"verbose": -1, "boosting_type": "rf"},
        **{"bagging_freq": 1, "bagging_fraction": 0.7},
    },
    "LocalOutlierFactor": {"novelty": True},
    "OneHotEncoder": {"sparse_output": False},
    "RadiusNeighborsClassifier": {"radius": 20.0},
    "RadiusNeighborsRegressor": {"radius": 20.0},
    "RandomTreesEmbedding": {"sparse_output": False, "n_estimators": 5},
    "SVC, probability": {"probability": True},
    "VotingClassifier": {"flatten_transform": False},
    "XGBRegressor, counts": {"objective": "count:poisson"},
}


def of_variant(options: dict[str, dict[str, Any]], kind: str) -> dict[str, Any]:
    """Options of a variant of an estimator, which by default are the estimator's."""
    return options.get(kind, options.get(kind.partition(",")[0], {}))


def fitted(name: str) -> tuple[Any, np.ndarray]:
    """An estimator, and the rows that it is called with: 60 rows of 5 numbers or words.

    Texts and labels are one column, which scikit-learn takes as a vector.
    """
    module, _, kind = name.rpartition(".")
    make = getattr(importlib.import_module(module), kind.partition(",")[0])
    arguments = _ARGUMENTS.get(kind, tuple)()
    estimator = make(*arguments, **of_variant(_OPTIONS, kind))
    random = np.random.default_rng(0)
    numbers = random.normal(size=(60, 5)).astype(np.float32)
    rows = _rows(kind, numbers, random)
    is_column = kind in _TEXTS | _LABELS
    target = _target(kind, estimator, numbers)
    estimator.fit(rows.ravel() if is_column else rows, *target)
    return estimator, rows


def _rows(kind: str, numbers: np.ndarray, random: np.random.Generator) -> np.ndarray:
    words = np.array(["red", "green", "blue"])
    if kind in _TEXTS:
        texts = [" ".join(random.choice(words, 4)) for _ in numbers]
        return np.array(texts)[:, None]
    if kind in _WORDS:
        return random.choice(words, (len(numbers), 2))
    if kind in _LABELS:
        return random.integers(0, 3, (len(numbers), 1))
    return np.abs(numbers).round() if kind in COUNTS else numbers


def _target(kind: str, estimator: Any, numbers: np.ndarray) -> tuple[Any, ...]:
    """What is fitted: one or two numbers or classes for each row, or nothing."""
    if kind in _LABELS:
        return ()
    real = numbers[:, 0] * 2 + numbers[:, 1]
    first = numbers[:, 0] + numbers[:, 1] > 0
    classes = first.astype(np.int64) + (numbers[:, 2] > 0.8)
    if kind in _OF_TWO_CLASSES or kind.endswith("two classes"):
        return (first.astype(np.int64),)
    if kind in _POSITIVE or kind.endswith("counts"):
        return (np.exp(real / 3),)
    is_regressor = importlib.import_module("sklearn.base").is_regressor(estimator)
    target = real if is_regressor else classes
    if kind.startswith(_SEVERAL) or kind.endswith("two targets"):
        second = numbers[:, 2] if is_regressor else numbers[:, 3] > 0
        target = np.stack([target, second.astype(target.dtype)], axis=1)
    return (target,)
