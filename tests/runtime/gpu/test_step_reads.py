"""Numbers that steps of a GPU read in Python, and that change between its graphs."""

import gc
import itertools

import cupy
import pytest

from tests.runtime.plan.step_reads import READS, Trained, follows, of_variable

FAST = [0.5] * 4
"""Of a call that runs eagerly, one that is captured, and two that are launches."""


@pytest.mark.parametrize("made", READS.values(), ids=READS)
@pytest.mark.parametrize("values", [FAST + [0.1] * 4 + FAST, [0.5] + [0.1] * 3])
def test_steps_read_anew_what_changes(made, values):
    """values: the factor changes behind launches, or before the capture."""
    fast = follows("cuda", made, values)
    assert "one CUDA graph" in fast.explain()
    assert "runs eagerly" not in fast.explain()


@pytest.mark.parametrize("made", READS.values(), ids=READS)
def test_what_changes_in_each_call_is_read_eagerly_in_the_end(made):
    fast = follows("cuda", made, [0.1 + i / 50 for i in range(14)])
    assert "change too often" in fast.explain()


@pytest.mark.parametrize("late", [0, 1])
def test_calls_are_counted_in_a_variable(late):
    """late: the calls before it counts; the second is the one that is captured."""
    count, calls = 0, itertools.count()  # which is no number that is compared

    def read():
        nonlocal count
        if next(calls) >= late:
            count += 1
        return 0.5

    fast = Trained("cuda", read, precision="fp32")
    for i in range(14):
        fast()
        assert count == max(0, i + 1 - late)
    assert "change too often" in fast.step.explain()


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_mixed_precision_goes_on_where_a_rate_changes(precision):
    read, change = of_variable()
    plain = Trained("cuda", lambda: 1.0, read)
    fast = Trained("cuda", lambda: 1.0, read, precision)
    for i in range(24):
        change(0.01 if i % 8 < 4 else 0.003)
        assert fast()[0] == pytest.approx(plain()[0], rel=5e-2)
    assert int(fast.rule.state_dict()["weight.step"]) == 24
    assert "one CUDA graph" in fast.step.explain()


def test_memory_does_not_grow_where_plans_are_made_anew():
    read, change = of_variable()
    fast, used = Trained("cuda", lambda: 1.0, read, "fp32"), []
    for _ in range(2):
        for i in range(100):
            change(0.01 if i % 10 < 5 else 0.003)
            fast()
        gc.collect()
        rooms = sum(room.nbytes for room in fast.step._rooms.values())
        used.append(rooms + cupy.get_default_memory_pool().used_bytes())
    assert used[1] <= used[0]
    assert "one CUDA graph" in fast.step.explain()
