"""Captures are compared with operators as NumPy computes them."""

import pytest

from burnish.kernels import direct


@pytest.fixture(autouse=True)
def _without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch norm in training has one that a captured program does not use."""
    monkeypatch.setattr(direct, "usable", lambda: None)
