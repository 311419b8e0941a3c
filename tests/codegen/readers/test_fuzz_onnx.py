"""Some of the files that `fuzz_onnx.py` makes a hundred thousand of."""

import subprocess
import sys

import pytest

from tests.codegen.readers import fuzz_onnx

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits memory, and reads /proc"
)


@pytest.mark.parametrize("first", [0])
def test_damaged_and_hostile_models(first):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", fuzz_onnx.__name__, "250", str(first)],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_number_is_a_file():
    good = fuzz_onnx.seeds()
    made = [fuzz_onnx.case(seed, good) for seed in range(50)]
    assert made == [fuzz_onnx.case(seed, good) for seed in range(50)]
    assert len(set(made)) > 45
