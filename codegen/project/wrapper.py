"""A build backend (PEP 517, PEP 660) that wraps another one without build hooks.

    [build-system]
    requires = ["uv_build", "burnish[codegen]"]
    build-backend = "burnish.codegen.project.wrapper"

    [tool.burnish]
    backend = "uv_build"

The modules are generated into the source tree, then the other backend does its work;
a source distribution gets the models, without generated files.
"""

from __future__ import annotations

import importlib
from functools import reduce
from pathlib import Path
from typing import Any

from burnish.codegen.errors import UsageError
from burnish.codegen.project import archive, tables, update

Settings = dict[str, Any] | None

_HANDED_ON = (
    "get_requires_for_build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_editable",
    "prepare_metadata_for_build_wheel",
    "prepare_metadata_for_build_editable",
)
"""Hooks that a backend may have; where the other has none, neither has this."""


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    _generate()
    return _inner().build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    _generate()
    return _inner().build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    project = tables.read(Path())
    every = update.modules(project)
    name: str = _inner().build_sdist(sdist_directory, config_settings)
    archive.corrected(
        Path(sdist_directory, name),
        {update.within(project, path): path for path in update.inputs_of(every)},
        {update.within(project, path) for path in update.generated_alone(every)},
    )
    return name


def __getattr__(name: str) -> Any:
    if name in _HANDED_ON:
        return getattr(_inner(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _generate() -> None:
    project = tables.read(Path())
    update.up_to_date(project, update.modules(project))


def _inner() -> Any:
    """The other backend."""
    backend = tables.read(Path()).backend
    if not backend:
        raise UsageError(
            f"{Path(tables.FILE).resolve()}: [tool.burnish]: backend: expected the "
            f'backend that builds the package, such as "uv_build" or '
            f'"flit_core.buildapi"; there is none'
        )
    module, _, place = backend.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{Path(tables.FILE).resolve()}: [tool.burnish]: backend: expected a "
            f"module, got {backend!r} ({error}); is it among the requires of "
            f"[build-system]?"
        ) from error
    return reduce(getattr, filter(None, place.split(".")), found)
