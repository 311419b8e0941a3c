"""Building the library of kernels: compilers that are slow, processes side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from burnish.errors import KernelError
from burnish.kernels import build

# Writes an empty file for the last word, and a line for every library that it links.
COMPILER = """#!/bin/sh
for word; do :; done
case "$*" in *-shared*) sleep 0.2; echo linked >> {log} ;; esac
echo "$$" > "$word"
"""

ONE = """
import sys
from burnish.kernels import build
sys.stdin.readline()
print(build.built(quiet=True, anew=sys.argv[1] == "anew"))
"""


def test_a_compiler_that_takes_too_long_is_named(tmp_path, monkeypatch):
    compiler = tmp_path / "slow"
    compiler.write_text("#!/bin/sh\nexec sleep 60\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr(build, "_SECONDS", 0.2)
    with pytest.raises(KernelError, match=r"slow was stopped after 0\.2 s; set CC"):
        build.built(to=tmp_path / "made", quiet=True)


KILLER = """#!/bin/sh
kill -9 $PPID
"""

BUILD = """
import sys
from pathlib import Path
from burnish.kernels import build
build.built(to=Path(sys.argv[1]), quiet=True)
"""


def test_the_folder_of_a_killed_build_goes_once_it_is_old(tmp_path, monkeypatch):
    """The compiler kills the process that builds; only a later build can tidy up."""
    compiler, place = tmp_path / "compiler", tmp_path / "made"
    compiler.write_text(KILLER)
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    subprocess.run([sys.executable, "-c", BUILD, str(place)], timeout=60)
    (left,) = place.iterdir()
    (place / "of the user").mkdir()
    compiler.write_text(COMPILER.format(log=tmp_path / "log"))
    for age, is_there in ((0, True), (2 * build._SECONDS, False)):
        os.utime(left, (time.time() - age,) * 2)
        build.built(to=place, quiet=True)
        assert left.is_dir() == is_there
        assert (place / "of the user").is_dir()


@pytest.mark.parametrize(("how", "links"), [("if need be", 1), ("anew", 3)])
def test_processes_that_need_the_library_build_it_one_at_a_time(
    how, links, tmp_path, monkeypatch
):
    compiler, log = tmp_path / "compiler", tmp_path / "log"
    compiler.write_text(COMPILER.format(log=log))
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([sys.executable, "-c", ONE, how], stdin=pipe, stdout=pipe)
        for _ in range(3)
    ]
    for each in started:
        each.stdin.write(b"\n")
        each.stdin.flush()
    files = {each.communicate(timeout=60)[0].decode().strip() for each in started}
    assert all(each.returncode == 0 for each in started)
    assert files == {str(build.found())}
    assert log.read_text().splitlines() == ["linked"] * links


def test_a_user_without_a_home_is_told_so(monkeypatch):
    def missing():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(build.Path, "home", missing)
    with pytest.raises(KernelError, match=r"no home folder .* set XDG_CACHE_HOME"):
        build.found()


FORKED = """
import fcntl, os, sys, time
from pathlib import Path
from burnish.kernels import build
place = Path(sys.argv[1])
with build._locked(place):
    child = os.fork()
    if not child:
        time.sleep(60)
try:
    fcntl.flock(os.open(place, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
finally:
    os.kill(child, 9)
"""


def test_a_forked_process_does_not_keep_the_lock(tmp_path):
    words = [sys.executable, "-c", FORKED, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("facts", "is_tuned"),
    [("sse4_2", True), ("avx2 fma", False), ("avx2 fma avx512f avx512bw", True)],
)
def test_vectors_of_eight_are_not_tuned_for_a_model(facts, is_tuned, monkeypatch):
    monkeypatch.setattr(build.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(build, "processor", lambda: f"x86_64\nflags : {facts}")
    tuning = () if is_tuned else ("-mtune=generic",)
    assert build.native() == ("-march=native", *tuning)
