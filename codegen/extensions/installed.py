"""Import the modules that installed packages name in a group of entry points."""

from __future__ import annotations

import functools
from types import ModuleType

from burnish.codegen.errors import UsageError


@functools.cache
def modules(group: str, package: bool = False) -> tuple[ModuleType, ...]:
    """The modules of a group, imported, by the order of their names.

    package: they have to be packages. Raises UsageError for one that is none or cannot
    be imported.
    """
    from importlib.metadata import entry_points

    found = []
    for point in sorted(entry_points(group=group), key=lambda each: each.value):
        origin = point.dist.name if point.dist else point.name
        try:
            module = point.load()
        except Exception as error:  # the module is another package's
            raise UsageError(
                f"{group}: expected modules to import, got {point.value!r} "
                f"({type(error).__name__}: {error}); mend or uninstall {origin}"
            ) from error
        if package and not hasattr(module, "__path__"):
            raise UsageError(
                f"{group}: expected packages, folders with templates and an "
                f"__init__.py, got {point.value!r}; mend or uninstall {origin}"
            )
        found.append(module)
    return tuple(found)
