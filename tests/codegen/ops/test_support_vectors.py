"""Support vector machines of ai.onnx.ml: numbers equal onnxruntime's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codegen.ops.test_classical import FLOAT, INT, RNG, ROWS, check

pytestmark = pytest.mark.oracle

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vector_regressors(kernel: str, one_class: int, tmp_path: Any) -> None:
    check(
        "SVMRegressor",
        ROWS,
        (FLOAT,),
        tmp_path,
        coefficients=RNG.normal(size=5).tolist(),
        support_vectors=RNG.normal(size=20).tolist(),
        n_supports=5,
        kernel_type=kernel,
        kernel_params=[0.4, 0.3, 3.0],
        rho=[0.2],
        one_class=one_class,
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("probabilities", [True, False])
def test_support_vector_classifiers(
    kernel: str, classes: int, probabilities: bool, tmp_path: Any
) -> None:
    per_class = [2, 1, 3, 2][:classes]
    vectors, pairs = sum(per_class), classes * (classes - 1) // 2
    options: dict[str, Any] = {}
    if probabilities:
        options["prob_a"] = (-1 - RNG.random(pairs)).tolist()
        options["prob_b"] = RNG.normal(size=pairs).tolist()
    check(
        "SVMClassifier",
        ROWS,
        (INT, FLOAT),
        tmp_path,
        coefficients=RNG.normal(size=vectors * (classes - 1)).tolist(),
        support_vectors=RNG.normal(size=4 * vectors).tolist(),
        vectors_per_class=per_class,
        kernel_type=kernel,
        kernel_params=[0.4, 0.3, 2.0],
        rho=RNG.normal(size=pairs).tolist(),
        classlabels_ints=[5, 1, 9, 3][:classes],
        **options,
    )


def test_linear_support_vector_classifiers(tmp_path: Any) -> None:
    check(
        "SVMClassifier",
        ROWS,
        (INT, FLOAT),
        tmp_path,
        coefficients=RNG.normal(size=12).tolist(),
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
        rho=[0.2],
        classlabels_ints=[5, 1, 9],
    )
