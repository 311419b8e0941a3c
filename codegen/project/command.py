"""A sub-command of setuptools' `build` that generates the modules of a project.

Both entry points are found by setuptools itself: a project with tables in its
pyproject.toml needs no line in setup.py.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import Command

if TYPE_CHECKING:
    from setuptools import Distribution

    from burnish.codegen.project.update import Module

NAME = "build_burnish"


class build_burnish(Command):
    """Generates into the folder of the build, or in place where that is editable."""

    description = "generate the modules of [[tool.burnish.model]] tables"
    user_options: list[Any] = []  # noqa: RUF012 (as setuptools has it)

    build_lib: str
    editable_mode: bool

    def initialize_options(self) -> None:
        self.build_lib = None  # type: ignore[assignment]  # build_py's, later
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        from burnish.codegen.project import update

        into = None if self.editable_mode else Path(self.build_lib).resolve()
        update.up_to_date(self.project, self.modules, into)

    @cached_property
    def project(self) -> Any:
        from burnish.codegen.project import tables

        return tables.read(Path())

    @cached_property
    def modules(self) -> list[Module]:
        from burnish.codegen.project import update

        return update.modules(self.project)

    def get_source_files(self) -> list[str]:
        """The model files, which a source distribution contains."""
        from burnish.codegen.project import update

        files = (path for t in self.project.models for path in update.inputs(t))
        return sorted({update.within(self.project, path) for path in files})

    def get_outputs(self) -> list[str]:
        return list(self.get_output_mapping())

    def get_output_mapping(self) -> dict[str, str]:
        """Each file of the build, and its path in an editable install."""
        from burnish.codegen.project import update

        packages = self.project.packages
        return {
            str(Path(self.build_lib, path.relative_to(packages))): update.within(
                self.project, path
            )
            for path in update.outputs(self.modules)
        }


def finalize(distribution: Distribution) -> None:
    """Put the command into `build` where the project here has tables.

    Called for every build in an environment that has Burnish: others stay untouched.
    """
    text = Path("pyproject.toml")
    if not text.is_file() or b"tool.burnish" not in text.read_bytes():
        return
    from burnish.codegen.project import tables

    if not tables.read(Path()).models:
        return
    whole = distribution.get_command_class("build")
    if not any(name == NAME for name, _ in whole.sub_commands):
        own = {"sub_commands": [*whole.sub_commands, (NAME, None)]}
        distribution.cmdclass["build"] = type("build", (whole,), own)
    distribution.cmdclass["sdist"] = _without_generated(
        distribution.get_command_class("sdist")
    )


def _without_generated(whole: type) -> type:
    """An `sdist` without generated files."""

    class sdist(whole):  # type: ignore[misc]
        def make_distribution(self) -> None:
            from burnish.codegen.project import update

            command = self.get_finalized_command(NAME)
            left_out = {
                update.within(command.project, path)
                for path in update.generated_alone(command.modules)
            }
            self.filelist.files = [
                name
                for name in self.filelist.files
                if Path(name).as_posix() not in left_out
            ]
            super().make_distribution()

    return sdist
