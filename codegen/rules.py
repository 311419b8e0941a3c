"""Operators that a user teaches: modules that declare rules with `@onnx_op`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from burnish.codegen.errors import UsageError


def load(modules: Iterable[str]) -> None:
    """Import modules by name, from the current folder too; their rules then count.

    Raises UsageError for one that cannot be imported.
    """
    for name in modules:
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UsageError(
                f"--rules: expected a module to import, got {name!r} ({error})"
            ) from None
