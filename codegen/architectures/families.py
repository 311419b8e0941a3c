"""Choose the template by `model_type` and by the class name of the head."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.errors import UnsupportedError
from burnish.codegen.extensions.environment import packages
from burnish.codegen.names.identifier import plain

Values = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """The model types of one template.

    prefixes: what class names start with, by model type ("bert": "Bert").
    heads: what may follow ("Model", "ForMaskedLM"), the base model first.
    values: the template's variables, from the configuration and the head.
    base: the attribute that holds the base model in one with a head ("bert").
    """

    template: str
    prefixes: Mapping[str, str]
    heads: tuple[str, ...]
    base: str
    values: Callable[[Config, str], Values]


_FAMILIES: dict[str, Family] = {}


def family(
    template: str,
    prefixes: Mapping[str, str],
    heads: Iterable[str],
    base: str,
) -> Callable[[Callable[[Config, str], Values]], Callable[[Config, str], Values]]:
    """Register the function that reads such configurations; the last one for a type.

    It gives the template's values: "sizes", the constructor's arguments and their
    defaults, "contract", the docstring's first line, and whatever else is written;
    "base" and "base_name", the base model's attribute and class, are there already.
    """

    def register(
        values: Callable[[Config, str], Values],
    ) -> Callable[[Config, str], Values]:
        made = Family(template, prefixes, tuple(heads), base, values)
        for model_type in prefixes:
            _FAMILIES[model_type] = made
        return values

    return register


def find(model_type: object) -> Family | None:
    """The family of a `model_type`; None when no template writes it."""
    packages()
    return _FAMILIES.get(model_type) if isinstance(model_type, str) else None


def model_types() -> list[str]:
    """Every `model_type` that a template writes."""
    packages()
    return sorted(_FAMILIES)


def head_of(config: Config, found: Family) -> str:
    """The head that `architectures` names, the base model's when it names none."""
    prefix = found.prefixes[config.values["model_type"]]
    names = config.raw("architectures")
    if not names:
        return found.heads[0]
    name = names[0] if isinstance(names, list) else names
    for head in found.heads:
        if name == prefix + head:
            return head
    known = ", ".join(prefix + head for head in found.heads)
    raise UnsupportedError(
        f"{config.where}: architectures: expected one out of {known}, "
        f"got {plain(re.sub(chr(10), ' ', str(name)))}"
    )
