"""Small files that ask for much get source, or one clean error, and little else."""

import sys

import pytest

from tests.codegen.readers.hostile import CASES, NAME, write
from tests.harness.attempts import measured
from tests.harness.limited import MEGABYTE, Limited

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux", reason="limits memory, and reads /proc"
    ),
]

# Of processor time, and as much for each megabyte; the lowest onnx-ir takes twice what
# the newest does.
SECONDS = 6


@pytest.fixture(scope="module")
def server():
    with Limited(NAME) as server:
        yield server


@pytest.mark.parametrize("name", CASES)
@measured
def test_a_small_file_costs_little(name, server, tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "out"
    out.mkdir(exist_ok=True)
    megabytes = write(CASES[name], path) / MEGABYTE
    report = server.run(f"{NAME}:everything", str(path), str(out), folder=out)
    assert report["outcome"] == "done", report
    assert report["watched"] == []
    assert report["megabytes"] < 64 + 10 * megabytes, report
    assert report["seconds"] < SECONDS * (1 + megabytes), report
    written = sum(file.stat().st_size for file in out.iterdir())
    assert written < (64 + 10 * megabytes) * MEGABYTE
