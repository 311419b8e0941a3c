"""ONNX's node cases pass through generated source; exclusions have reasons."""

import pytest

from tests.conformance.runner import cases, exclusions, failure


@pytest.mark.parametrize("name", cases())
def test_node(name: str) -> None:
    reason = failure(name)
    if name in exclusions():
        assert reason is not None, "passes now: take it out of exclusions.toml"
    else:
        assert reason is None, reason


def test_exclusions_name_cases() -> None:
    unknown = exclusions().keys() - cases().keys()
    assert not unknown
