"""The source of a model from its family's template."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from burnish.codegen.architectures.spacing import spaced
from burnish.codegen.architectures.words import brief
from burnish.codegen.render.environment import filled
from burnish.codegen.render.words import literal

_IMPORTED = ("Tensor", "generation", "nn", "ops")


def page(
    template: str,
    values: dict[str, Any],
    header: tuple[str, ...],
    embedded: str | None,
    template_dir: Path | None = None,
) -> str:
    """The module's source; `header` are its docstring's lines below the first."""
    body = spaced(
        filled(
            f"architectures/{template}",
            template_dir,
            **values,
            literal=literal,
            brief=brief,
        )
    )
    if body.startswith(("class", "def")):
        body = f"\n{body}"
    used = [name for name in _IMPORTED if re.search(rf"\b{name}\b[.(]", body)]
    return filled(
        "architectures/_page.py.jinja",
        template_dir,
        name=values["name"],
        contract=values["contract"],
        header=header,
        math=re.search(r"\bmath\.", body) is not None,
        imports=", ".join(used),
        body=body,
        embedded=embedded,
    )
