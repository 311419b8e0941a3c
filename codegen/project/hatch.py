"""A build hook of hatchling, for [tool.hatch.build.hooks.burnish].

A wheel and an editable installation get generated files in the source tree, a
source distribution the models and nothing that is generated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from burnish.codegen.project import tables, update


class BurnishHook(BuildHookInterface):  # type: ignore[type-arg]
    """Generates the modules of the project's tables before a wheel is built."""

    PLUGIN_NAME = "burnish"

    def clean(self, versions: list[str]) -> None:
        """Remove generated files from the source tree, for `hatch clean`."""
        update.cleaned(tables.read(Path(self.root)))

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        project = tables.read(Path(self.root))
        if self.target_name not in ("sdist", "wheel"):
            return
        every = update.modules(project)
        if self.target_name == "sdist":
            self._carry_models(project, every, build_data)
            return
        update.up_to_date(project, every)
        for path in update.outputs(every):
            build_data["artifacts"].append(_pattern(project, path))

    def _carry_models(
        self,
        project: tables.Project,
        every: list[update.Module],
        build_data: dict[str, Any],
    ) -> None:
        """Every model, also one that version control ignores, and nothing generated."""
        for path in update.inputs_of(every):
            build_data["force_include"][str(path)] = update.within(project, path)
        left_out = self.build_config.target_config.setdefault("exclude", [])
        left_out += [_pattern(project, path) for path in update.generated_alone(every)]


def _pattern(project: tables.Project, path: Path) -> str:
    """A path as .gitignore has it."""
    return f"/{update.within(project, path)}"


@hookimpl
def hatch_register_build_hook() -> type[BurnishHook]:
    """What the entry point of group `hatch` gives."""
    return BurnishHook
