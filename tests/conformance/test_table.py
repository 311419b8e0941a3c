"""docs/operators.md is what the rules and the list of exclusions give."""

import onnx
import pytest

from tests.conformance.runner import exclusions
from tests.conformance.table import PAGE, page
from tests.harness.onnx_cases import cases

CONTENT = PAGE.read_text("utf-8")


@pytest.mark.skipif(
    f"(onnx {onnx.__version__})" not in CONTENT,
    reason="another onnx has other node cases",
)
def test_the_page_is_up_to_date() -> None:
    printed = page(list(cases()), set(exclusions()))
    assert printed == CONTENT, "run: python -m tests.conformance.table"
