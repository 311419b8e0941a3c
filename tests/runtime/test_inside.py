"""Names and links that lead out of a folder are refused, for reading and writing."""

import pytest

from burnish._files.atomic import atomic_write
from burnish._files.inside import inside
from burnish.errors import RecordError


@pytest.mark.parametrize(
    "name",
    ["../a", "x/../../a", "/etc/passwd", "C:a", "C:\\a", "\\a", "..\\a", "", "a\0"],
)
def test_names_that_leave(tmp_path, name):
    with pytest.raises(RecordError, match="expected a file below"):
        inside(tmp_path, name, "index")


def test_names_and_links_that_stay(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    for name in ("deep/x", "real", "link"):
        assert inside(tmp_path, name, "index") == str(tmp_path / name)


def test_a_cache_has_its_blobs(tmp_path):
    snapshot = tmp_path / "models--a" / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a" / "blobs").mkdir()
    (tmp_path / "models--a" / "blobs" / "123").touch()
    (snapshot / "x").symlink_to("../../blobs/123")
    (tmp_path / "secret").touch()
    (snapshot / "y").symlink_to(tmp_path / "secret")
    assert inside(snapshot, "x", "index") == str(snapshot / "x")
    with pytest.raises(RecordError, match="a link that leaves"):
        inside(snapshot, "y", "index")


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_a_link_that_leaves(tmp_path, there):
    (tmp_path / "out").mkdir()
    victim = tmp_path / "victim"
    if there:
        victim.write_text("mine")
    (tmp_path / "out" / "net.py").symlink_to("../victim")
    target = tmp_path / "out" / "net.py"
    with pytest.raises(PermissionError, match="leaves"), atomic_write(target) as file:
        file.write(b"ours")
    assert victim.exists() == there
    assert not there or victim.read_text() == "mine"
