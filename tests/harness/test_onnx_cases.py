from __future__ import annotations

import pytest

from tests.harness import kept, onnx_cases


@pytest.fixture
def counted(monkeypatch, tmp_path) -> list[object]:
    """The calls that compute cases, here of two of them, for a cache of its own."""
    calls: list[object] = []
    two = list(onnx_cases.cases().values())[:2]
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    monkeypatch.setattr(
        onnx_cases, "collect_testcases", lambda kind: calls.append(kind) or two
    )
    monkeypatch.setattr(onnx_cases, "cases", onnx_cases.cases.__wrapped__)
    return calls


def test_cases_are_computed_once(counted):
    first, second = onnx_cases.cases(), onnx_cases.cases()
    assert len(counted) == 1
    assert len(first) == 2
    assert [case.model for case in first.values()] == [
        case.model for case in second.values()
    ]


def test_another_version_has_cases_of_its_own(counted, monkeypatch):
    onnx_cases.cases()
    monkeypatch.setattr(onnx_cases, "VERSIONS", ["0.1"])
    onnx_cases.cases()
    assert len(counted) == 2
