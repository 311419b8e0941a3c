"""Texts that wait are formatted and linted, and a complaint names the test."""

from __future__ import annotations

import pytest

from tests.harness import ruff

pytestmark = pytest.mark.skipif(not ruff.INSTALLED, reason="ruff is not installed")


def test_well_formed_texts_pass() -> None:
    for number in range(2):
        ruff.lint_later(f"x = {number}\n")
    ruff.lint_waiting()


@pytest.mark.parametrize("text", ["x = {'a': 1}\n", "import os\n"])
def test_a_complaint_names_the_test(text: str) -> None:
    for each in ("x = 1\n", text):
        ruff.lint_later(each)
    with pytest.raises(AssertionError, match="test_a_complaint_names_the_test"):
        ruff.lint_waiting()
    ruff.lint_waiting()
