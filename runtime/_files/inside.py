"""Check that paths in a file stay inside its folder."""

from __future__ import annotations

import os

from burnish.errors import RecordError


def inside(folder: str | os.PathLike[str], name: str, where: str) -> str:
    """The path of a file that another file names, below `folder`.

    Raises RecordError where the name, or a link on the way, leads out of the folder.
    Links of Hugging Face's cache, from snapshots/REVISION to its blobs, stay in it.
    """
    parts = name.replace("\\", "/").split("/")
    drive = len(parts[0]) > 1 and parts[0][1] == ":"
    text = name.encode("utf-8", "replace").decode() == name  # no lone surrogates
    if not name or not text or "\0" in name or drive or not parts[0] or ".." in parts:
        raise RecordError(f"{where}: expected a file below {folder}, got {name[:80]!r}")
    path = os.path.join(folder, name)
    target, top = os.path.realpath(path), os.path.realpath(folder)
    if not (_below(target, top) or _is_blob(target, top)):
        raise RecordError(
            f"{where}: expected a file below {folder}, got {name[:80]!r}, a link that "
            f"leaves it; copy the file there"
        )
    return path


def _below(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


def _is_blob(target: str, folder: str) -> bool:
    """Whether a folder is a snapshot of a cache, and a file one of its blobs."""
    before, snapshots, _ = f"{folder}/".rpartition("/snapshots/")
    return bool(snapshots) and os.path.dirname(target) == os.path.join(before, "blobs")
