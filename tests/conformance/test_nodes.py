"""ONNX's node cases pass through generated source; exclusions have reasons."""

import re

import pytest

from tests.conformance.runner import exclusions, failure
from tests.harness.onnx_cases import cases
from tests.harness.reference import needs_onnx

MENDED = {
    r"test_attention_\dd_gqa(_scaled|_causal|_attn_mask|_softcap)?": (1, 20),
    r"test_rotary_embedding_\w*rotary_dim": (1, 20),
    "test_l2normalization_axis_0": (1, 21),
    "test_adam_multiple": (1, 22),
    r"test_qlinearmatmul_2D_int8_\w+": (1, 22),
    r"test_qlinearmatmul_3D_int8_\w+": (1, 23),
}
"""Cases whose results older versions of onnx have wrong."""


def judged(name: str) -> object:
    """The name, marked where the installed onnx has the case wrong."""
    marks = [
        needs_onnx(*since, f"the results of {name}")
        for pattern, since in MENDED.items()
        if re.fullmatch(pattern, name)
    ]
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [judged(name) for name in cases()])
def test_node(name: str) -> None:
    reason = failure(name)
    if name in exclusions():
        assert reason is not None, "passes now: take it out of exclusions.toml"
    else:
        assert reason is None, reason


def test_exclusions_name_cases() -> None:
    unknown = exclusions().keys() - cases().keys()
    assert not unknown
