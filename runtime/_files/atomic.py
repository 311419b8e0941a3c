"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes `path`'s place when the block ends without an error.

    It is written beside `path` and flushed to the disk first, and so is the folder's
    entry afterwards where the platform can; after an error the file is removed and
    whatever was at `path` stays. A file that is replaced leaves its permissions. A link
    that leads out of its folder is refused.
    """
    target = os.path.realpath(path)
    beside = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    if os.path.islink(path) and not target.startswith(os.path.join(beside, "")):
        raise PermissionError(
            errno.EPERM,
            f"Not written through a link that leaves its folder, to {target}",
            os.fspath(path),
        )
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "No such folder to write to", folder)
    with open(temporary, "xb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(temporary, target)
        except BaseException:
            file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    _flush_entry(folder)


def _flush_entry(folder: str) -> None:
    """Let a power failure not bring the old file back."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    with suppress(OSError):  # some file systems cannot; the file is whole all the same
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
