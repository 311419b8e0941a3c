"""The one place where templates are loaded."""

from __future__ import annotations

from pathlib import Path

import jinja2


def environment(template_dir: Path | None = None) -> jinja2.Environment:
    """The package's templates; a file of the same name in `template_dir` goes first."""
    loaders: list[jinja2.BaseLoader] = [jinja2.PackageLoader("burnish.templates", "")]
    if template_dir is not None:
        loaders.insert(0, jinja2.FileSystemLoader(template_dir))
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
