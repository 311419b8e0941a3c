"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes `path`'s place when the block ends without an error.

    It is written beside `path` and flushed to the disk first; after an error it is
    removed and whatever was at `path` stays.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    with open(temporary, "xb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, target)
        except BaseException:
            file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
