"""Some of the files that `python -m tests.fuzz SUBJECT` makes a hundred thousand of."""

import random
import subprocess
import sys

import pytest

from tests.fuzz import NAMES, subject

#: How many: a few seconds each.
COUNTS = {"weights": 600, "records": 600, "runs": 400, "data": 600, "folders": 150}
COUNTS |= {"sources": 60, "models": 150}


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory, and reads /proc")
@pytest.mark.parametrize("name", NAMES)
def test_damaged_and_hostile_files(name):
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, str(COUNTS[name])],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_number_is_a_file(name):
    reader = subject(name)
    seeds = reader.seeds()
    made, again = (
        [reader.case(random.Random(number), seeds) for number in range(40)]
        for _ in range(2)
    )
    assert made == again
    assert len({tuple(files.items()) for files in made}) > 30
