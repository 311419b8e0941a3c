"""Sizes in the contracts of classes have an author's names, and no tool's."""

from __future__ import annotations

import pytest

from burnish.codegen.arrange.analysis.shape_contracts import shape_text

TEXTS = [
    (("batch", 8), "(batch, 8)"),
    (("batch*2", "classes"), "(batch*2, classes)"),
    (("unk__58", "unk__58*unk__59", "s0"), "(_, _, _)"),  # shape inference, PyTorch
    (("Reshape_470_o0__d2", 4), "(_, 4)"),  # symbolic shape inference
    ((None,), "(_,)"),
    (None, "(...)"),
]


@pytest.mark.parametrize(("shape", "text"), TEXTS)
def test_a_shape_is_text(shape: tuple[int | str | None, ...] | None, text: str) -> None:
    assert shape_text(shape) == text
