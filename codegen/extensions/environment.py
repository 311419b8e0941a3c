"""Load the Jinja templates, ours and installed packages'; the one place that does."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2

from burnish.codegen.errors import ConversionError
from burnish.codegen.extensions import installed


def packages() -> tuple[ModuleType, ...]:
    """Installed packages with templates, imported: they may declare families, too.

    Raises UsageError for one that cannot be imported or is no package.
    """
    return installed.modules("burnish.templates", package=True)


def filled(name: str, template_dir: Path | None, /, **values: Any) -> str:
    """Render one template; raises ConversionError for an error in it."""
    try:
        return environment(template_dir).get_template(name).render(values)
    except jinja2.TemplateSyntaxError as error:
        where = f"{error.filename or error.name}, line {error.lineno}"
        raise ConversionError(f"template {where}: {error.message}") from error
    except jinja2.TemplateError as error:
        raise ConversionError(f"template {name}: {error.message}") from error


@cache
def environment(template_dir: Path | None = None) -> jinja2.Environment:
    """The package's templates; files in `template_dir` override them by name.

    Between the two are the folders of the packages that entry points name.
    Pages for a browser (`*.html.jinja`) escape what they are given. Kept, so that a
    template is compiled once; a changed file is read again.
    """
    loaders: list[jinja2.BaseLoader] = [jinja2.PackageLoader("burnish.templates", "")]
    for module in packages():
        loaders[:0] = [jinja2.FileSystemLoader(place) for place in module.__path__]
    if template_dir is not None:
        loaders.insert(0, jinja2.FileSystemLoader(template_dir))
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=lambda name: name is not None and name.endswith(".html.jinja"),
    )
