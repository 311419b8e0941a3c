"""Small files that ask for much get source, or one clean error, and little else.

To start a process costs more than to refuse such a file. So one goes through several
of the smallest, which may cost together what one of them may; if they cost more, each
is measured alone.
"""

import shutil
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
#: Files of more bytes have a process each.
LARGE = 30_000
GROUPS = 8


@pytest.fixture(scope="module")
def server():
    with Limited(NAME) as server:
        yield server


def cost_little(paths, server, out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    megabytes = [path.stat().st_size / MEGABYTE for path in paths]
    least = min(megabytes)
    report = server.run(f"{NAME}:each", [*map(str, paths)], str(out), folder=out)
    assert report["outcome"] == "done", (paths, report)
    assert report["watched"] == []
    assert report["megabytes"] < 64 + 10 * least, (paths, report)
    assert report["seconds"] < SECONDS * (1 + least), (paths, report)
    for path, size in zip(paths, megabytes, strict=True):
        written = sum(
            file.stat().st_size for file in (out / path.parent.name).iterdir()
        )
        assert written < (64 + 10 * size) * MEGABYTE, path


@pytest.mark.parametrize("group", range(GROUPS))
def test_small_files_cost_little(group, server, tmp_path):
    alone, together = [], []
    for name in [*CASES][group::GROUPS]:
        path = tmp_path / name / "model.onnx"
        path.parent.mkdir()
        (together if write(CASES[name], path) < LARGE else alone).append(path)
    try:
        cost_little(together, server, tmp_path / "out")
    except AssertionError:
        alone += together
    for path in alone:
        measured(cost_little)([path], server, tmp_path / "out")
