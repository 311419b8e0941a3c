"""The source of a model from its family's template."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from burnish.codegen.architectures.annotate import annotated
from burnish.codegen.architectures.words import brief
from burnish.codegen.extensions.environment import filled
from burnish.codegen.render.words import literal

_IMPORTED = ("Device", "Tensor", "generation", "nn", "ops")


def page(
    template: str,
    values: dict[str, Any],
    header: tuple[str, ...],
    embedded: str | None,
    template_dir: Path | None = None,
    *,
    typed: bool = False,
) -> str:
    """The module's source; `header` are its docstring's lines below the first."""
    words = {"literal": literal, "brief": brief}
    body = filled(f"architectures/{template}", template_dir, **values, **words)
    body = body.strip("\n")  # a part that is left out leaves its blank lines
    if body.startswith(("class", "def")):
        body = f"\n{body}"
    if typed:
        body = annotated(body)
    nodes = ast.walk(ast.parse(body))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return filled(
        "architectures/_page.py.jinja",
        template_dir,
        name=values["name"],
        contract=values["contract"],
        header=header,
        math="math" in names,
        any="Any" in names,
        imports=", ".join(name for name in _IMPORTED if name in names),
        body=body,
        embedded=embedded,
    )
