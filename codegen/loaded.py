"""Import a generated module from its file, and make its model."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from burnish.codegen.errors import VerifyError
from burnish.errors import BurnishError

_IMPORTED = "burnish_generated_module"


@contextmanager
def imported(file: Path) -> Iterator[ModuleType]:
    """The module of a file, imported without leaving a trace.

    Raises VerifyError where it cannot be imported.
    """
    spec = importlib.util.spec_from_file_location(_IMPORTED, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[_IMPORTED] = module
    try:
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # the module may be edited: it raises anything
            raise _broken(file, "a module to import", error) from error
        yield module
    finally:
        sys.dont_write_bytecode = before
        del sys.modules[_IMPORTED]


@contextmanager
def executed(text: str, name: str = _IMPORTED) -> Iterator[ModuleType]:
    """The module of a source that is in no file; `name` is gone again afterwards."""
    module = ModuleType(name)
    sys.modules[name] = module
    try:
        exec(compile(text, "<the generated source>", "exec"), vars(module))
        yield module
    finally:
        del sys.modules[name]


def model_of(module: ModuleType, file: Path, weights: Path | None = None) -> Any:
    """The model with its weights, where there are any.

    weights: a file of them instead of those beside the module or in it. Raises
    VerifyError where the module has no class Model, or it cannot be made.
    """
    model = getattr(module, "Model", None)
    if model is None:
        raise VerifyError(f"{file}: expected a class Model, there is none")
    has_weights = (
        hasattr(module, "WEIGHTS") or file.with_suffix(".safetensors").exists()
    )
    try:
        if weights is not None:
            return model.from_file(weights)
        return model.from_embedded() if has_weights else model()
    except (BurnishError, OSError):
        raise
    except Exception as error:
        raise _broken(file, "its Model to be made", error) from error


def _broken(file: Path, expected: str, error: Exception) -> VerifyError:
    got = f"{type(error).__name__}: {error}"
    return VerifyError(f"{file}: expected {expected}, got {got}")
