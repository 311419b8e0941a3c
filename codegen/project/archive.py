"""Add models to and remove generated files from a finished source distribution."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from burnish._files.atomic import atomic_write


def corrected(sdist: Path, carried: Mapping[str, Path], left_out: set[str]) -> None:
    """Put files into an sdist that it lacks, and take others out, in place.

    carried: files by their names below the sdist's folder. Owners and times are those
    of the sdist itself, so that equal sources make equal files.
    """
    with tarfile.open(sdist, "r:gz") as old:
        members = old.getmembers()
        top = members[0].name.partition("/")[0]
        held = {member.name.removeprefix(f"{top}/") for member in members}
        if not (carried.keys() - held or left_out & held):
            return
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as new:
            for member in members:
                if member.name.removeprefix(f"{top}/") not in left_out:
                    new.addfile(member, old.extractfile(member))
            like = next(member for member in members if member.isfile())
            for name in sorted(carried.keys() - held):
                _add(new, f"{top}/{name}", carried[name], like)
    head = sdist.read_bytes()[:10]
    time = int.from_bytes(head[4:8], "little")  # as the backend wrote it
    with (
        atomic_write(sdist) as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
    ):
        packed.write(made.getvalue())


def _add(
    archive: tarfile.TarFile, name: str, path: Path, like: tarfile.TarInfo
) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = path.stat().st_size
    entry.mtime, entry.mode = like.mtime, 0o644
    entry.uid, entry.gid, entry.uname, entry.gname = (
        like.uid,
        like.gid,
        like.uname,
        like.gname,
    )
    with path.open("rb") as file:
        archive.addfile(entry, file)
