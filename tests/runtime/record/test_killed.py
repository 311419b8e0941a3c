"""A process that is killed while it saves leaves the previous file or the new one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from burnish._files.atomic import atomic_write


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_every_kill_leaves_a_whole_record(tmp_path):
    program = str(Path(__file__).with_name("killed.py"))
    done = subprocess.run(
        [sys.executable, program, str(tmp_path), "200"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["rounds"] == 200
    assert report["unfinished"] >= 5  # so many kills came in the middle of a file
    assert report["saved"] >= 5


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail():
        with atomic_write(path) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_folder_is_named(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"No such folder .*nowhere'$"),
        atomic_write(tmp_path / "nowhere" / "file"),
    ):
        pass


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="the platform cannot")
def test_the_folder_is_flushed_after_the_file_has_its_name(tmp_path, monkeypatch):
    path, flushed, flush = tmp_path / "file", [], os.fsync

    def note(descriptor):
        is_folder = os.path.isdir(f"/dev/fd/{descriptor}")
        flushed.append((is_folder, path.exists()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    with atomic_write(path) as file:
        file.write(b"new")
    assert flushed == [(False, False), (True, True)]
