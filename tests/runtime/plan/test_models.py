"""Layers, operators, ONNX's cases and the gallery, compiled and eager."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

import numpy as np
import pytest

import burnish
import tests.runtime.ops as tables
from burnish import Tensor
from burnish.models._gallery import ENTRIES
from burnish.models._numbers import feeds
from burnish.models.mnist.mnist import Model
from tests.conformance import runner
from tests.harness import onnx_cases
from tests.harness.operators import Case
from tests.models.test_gallery import loaded
from tests.runtime.capture.test_layers import ROWS
from tests.runtime.plan.checks import check, records, same

SAMPLED = 25
"""One of so many of ONNX's cases is run."""


def cases() -> list[Any]:
    """Every row of the operators' tables."""
    found = []
    for module in pkgutil.iter_modules(tables.__path__):
        if module.name.startswith("test_"):
            page = vars(importlib.import_module(f"{tables.__name__}.{module.name}"))
            lists = [item for item in page.values() if isinstance(item, list)]
            found += [case for rows in lists for case in rows if isinstance(case, Case)]
    return found


def given(case: Any) -> list[Any]:
    """A case's inputs in single precision."""
    random = np.random.default_rng(3)
    made = []
    for each in case.inputs:
        if isinstance(each, tuple) and all(isinstance(n, int) for n in each):
            each = random.uniform(case.low, case.high, each)
        if isinstance(each, np.ndarray):
            each = Tensor(each.astype(np.float32) if each.dtype.kind == "f" else each)
        made.append(each)
    return made


def test_operators():
    """All tables in one test: a row takes a millisecond."""
    count = 0
    for case in cases():
        inputs = given(case)

        def function(*args, case=case):
            return case.op(*args, **case.options)

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                function(*inputs)
            except Exception:  # a table of other dtypes
                continue
            check(function, *inputs)
        count += 1
    assert count > 400


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row[0]).__name__)
def test_layers(row):
    layer, arrays, call = row
    options = {
        k: Tensor(v) if isinstance(v, np.ndarray) else v for k, v in call.items()
    }
    check(lambda *args: layer(*args, **options), *map(Tensor, arrays))


def test_cases_of_onnx():
    excluded = runner.exclusions()
    count = 0
    for name, case in sorted(onnx_cases.cases().items())[::SAMPLED]:
        if name in excluded or runner.RANDOM.match(name):
            continue
        model = runner.imported(case.model)
        inputs = map(runner.plain, case.data_sets[0][0])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            check(model, *map(runner.given, inputs))
        count += 1
    assert count > 40


def test_mnist():
    images = Tensor(np.random.default_rng(0).random((3, 28, 28), np.float32))
    fast = check(Model.from_file(), images)
    assert "0 eager calls" in fast.plan(images)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.module)
def test_the_gallery(entry, tmp_path):
    """silero_vad looks at a whole number, the rate, and is planned for its value."""
    model = loaded(entry, tmp_path)
    for feed in feeds(entry.folder)[:2]:
        fast = burnish.compile(model)
        args = [Tensor(array) for array in feed.values()]
        same(fast(*args), model(*args))
        assert records(fast)
        assert "planning failed" not in fast.explain()
