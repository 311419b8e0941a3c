"""Numbers that planned steps of training read in Python, and that change."""

from __future__ import annotations

import pytest

from .step_reads import READS, follows


@pytest.mark.parametrize("made", READS.values(), ids=READS)
def test_steps_read_anew_what_changes(made):
    fast = follows("cpu", made, [0.5] * 4 + [0.1] * 3 + [0.5] * 4)
    assert "one plan" in fast.explain()
