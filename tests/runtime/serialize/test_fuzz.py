"""A few thousand of the files that `fuzz.py` makes a hundred thousand of."""

import pytest

from tests.runtime.serialize import fuzz


@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_damaged_and_hostile_files(first, capsys):
    problems = fuzz.run(first, 250)
    assert problems == 0, capsys.readouterr().out
