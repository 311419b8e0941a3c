"""Load users' modules that declare rules with `@onnx_op`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from burnish.codegen.errors import UsageError
from burnish.codegen.ops import load_installed


def load(modules: Iterable[str], folder: Path | None = None) -> None:
    """Import modules by name, from `folder` where nothing else has the name.

    folder: by default the current one; it is on the path during the import only.
    Raises UsageError for a module that cannot be imported.
    """
    load_installed()  # first: named rules go before them
    here = str(folder or Path.cwd())
    sys.path.append(here)
    try:
        for name in modules:
            _imported(name)
    finally:
        sys.path[:] = [place for place in sys.path if place is not here]


def _imported(name: str) -> None:
    if name.endswith(".py"):
        raise UsageError(
            f"--rules: expected a module to import, got {name!r}; name it as `import` "
            f"does: {Path(name).stem}"
        )
    try:
        importlib.import_module(name)
    except Exception as error:  # the module is the user's: it may raise anything
        raise UsageError(
            f"--rules: expected a module to import, got {name!r} "
            f"({type(error).__name__}: {error})"
        ) from error
