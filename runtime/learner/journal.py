"""The application log: messages of Python's `logging` during a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def journal(path: Path) -> Iterator[None]:
    """Log records go to `path` in this block: Burnish's from INFO, others' as set."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    root, own = logging.getLogger(), logging.getLogger("burnish")
    level = own.level
    root.addHandler(handler)
    own.setLevel(min(own.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        own.setLevel(level)
        root.removeHandler(handler)
        handler.close()
