"""`--flat` gives the plain form: one class, with the same numbers."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from tests.harness.both_forms import both_forms, same_numbers
from tests.harness.gradients import exported, uneven
from tests.harness.strip import stripped
from tests.models.test_gradients import CASES

pytestmark = [
    pytest.mark.oracle("transformers"),
    pytest.mark.filterwarnings("ignore"),  # exporters warn of themselves
]


@pytest.mark.parametrize("names", ["named", "nameless"])
@pytest.mark.parametrize("case", CASES)
def test_modules_change_no_bit(case: str, names: str, tmp_path: Path) -> None:
    network, inputs, how = CASES[case]
    model = exported(uneven(network), inputs, **how)
    onnx.save(model if names == "named" else stripped(model), tmp_path / "model.onnx")
    models = both_forms(tmp_path / "model.onnx", tmp_path)
    same_numbers(models, [value.numpy() for value in inputs.values()])
