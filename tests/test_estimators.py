"""Estimators of scikit-learn, LightGBM and XGBoost give what onnxruntime gives."""

from __future__ import annotations

import re

import pytest

from tests.estimators import ESTIMATORS, PAGE, converted, difference


@pytest.mark.oracle("onnxruntime")
@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_gives_what_onnxruntime_gives(name: str) -> None:
    package = name.partition(".")[0]
    tool = "skl2onnx" if package == "sklearn" else "onnxmltools"
    for needed in (tool, package, "onnxruntime"):
        pytest.importorskip(needed)
    assert difference(converted(name)) <= 1e-4


def test_the_page_lists_them() -> None:
    shown = re.findall(
        r"^\| (\w+(?:, [\w ]+)?) \(([\w.]+)\) \|", PAGE.read_text(), re.M
    )
    assert [f"{module}.{kind}" for kind, module in shown] == ESTIMATORS
