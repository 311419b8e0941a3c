"""Budgets of files: counted in bytes and steps, one error for both."""

import pytest

from burnish._files.budget import Budget
from burnish.errors import BudgetError, RecordError

MIB = 1 << 20


@pytest.mark.parametrize("size", [0, 1000, MIB, 1 << 33])
def test_a_file_gets_less_than_ten_times_its_size_and_64_mib(size):
    budget = Budget(size, "model.pt")
    assert 4 * size + 32 * MIB < budget.limit < 10 * size + 64 * MIB
    budget.take(budget.limit - 1)
    assert budget.fits(1)
    assert not budget.fits(2)
    budget.take(1)
    with pytest.raises(BudgetError, match=rf"^model.pt: expected .* for {size} bytes"):
        budget.take(1)


def test_steps_are_a_second_a_megabyte_of_microseconds():
    budget = Budget(3_000_000, "model.pt")
    budget.step(5_000_000)
    with pytest.raises(BudgetError, match="about 4 s of work"):
        budget.step(1_000_000)


def test_a_file_that_is_trusted_gets_what_it_was_given():
    budget = Budget(10, "model.pt", 1000, "pass limit=BYTES")
    budget.step(10**12)
    budget.take(1000)
    with pytest.raises(BudgetError, match="if you trust it, pass limit=BYTES"):
        budget.take(1)


def test_whoever_catches_damage_catches_it():
    assert issubclass(BudgetError, RecordError)
