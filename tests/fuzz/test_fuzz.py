"""Some of the files that `python -m tests.fuzz SUBJECT` makes a hundred thousand of."""

import random
import subprocess
import sys

import pytest

from tests.fuzz import NAMES, subject
from tests.fuzz.changes import changed_json

#: How many: some three thousand, in a minute.
COUNTS = {"weights": 500, "records": 1000, "runs": 200, "data": 1000, "folders": 80}
COUNTS |= {"sources": 50, "models": 120}


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


@pytest.mark.parametrize("name", ["data", "folders", "records", "runs", "weights"])
def test_a_number_is_a_file(name):
    reader = subject(name)
    seeds = reader.seeds()
    made, again = (
        [reader.case(random.Random(number), seeds) for number in range(40)]
        for _ in range(2)
    )
    assert made == again
    assert len({tuple(files.items()) for files in made}) > 30


@pytest.mark.parametrize("text", [b"", b"5", b'"x"', b"[%s]" % (b"9" * 500), b'{"a":'])
def test_any_text_can_be_changed(text):
    for number in range(200):
        assert isinstance(changed_json(text, random.Random(number)), bytes)
