"""Rename the folder's weights to the parameters of the generated module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from burnish.codegen.account import few
from burnish.codegen.errors import ReadError
from burnish.nn import Buffer, Module
from burnish.serialize import LazyTensor

#: Buffers that old versions saved although they follow from the configuration.
_DERIVED = re.compile(
    r"(^|\.)(position_ids|token_type_ids|inv_freq|attn\.(masked_)?bias)$"
)
#: Spellings of old versions and today's.
_RENAMED = (
    (re.compile(r"\.gamma$"), ".weight"),
    (re.compile(r"\.beta$"), ".bias"),
    (re.compile(r"\.weight_g$"), ".parametrizations.weight.original0"),
    (re.compile(r"\.weight_v$"), ".parametrizations.weight.original1"),
)
_SHOWN = 5


def module_of(text: str) -> Any:
    """The model that the source describes, without values: they come when used."""
    space: dict[str, Any] = {"__name__": "burnish_generated"}
    exec(compile(text, "<generated>", "exec"), space)  # our own text: names and numbers
    return space["Model"]()


def fitted(
    model: Module, stored: Mapping[str, LazyTensor], base: str, where: str
) -> tuple[list[tuple[str, LazyTensor, bool]], list[str]]:
    """(path, tensor, whether it is trained) for all of the model's, and notes.

    base: a base model alone is stored without this prefix. A tensor that several paths
    lead to is taken once. Raises ReadError for what is missing or of another shape.
    """
    paths = dict(model.named_tensors(remove_duplicate=False))
    names: dict[int, list[str]] = {}
    unused: list[str] = []
    for name in stored:
        if (path := _path(name, paths, base)) is not None:
            names.setdefault(id(paths[path]), []).append(name)
        elif not _DERIVED.search(name):
            unused.append(name)
    found: list[tuple[str, LazyTensor, bool]] = []
    missing: list[str] = []
    wrong: list[str] = []
    for path, tensor in model.named_tensors():
        if id(tensor) not in names:
            missing.append(path)
            continue
        name, *others = names[id(tensor)]
        if stored[name].shape != tensor.shape:
            wrong.append(f"{name}: expected {tensor.shape}, got {stored[name].shape}")
        wrong += [
            f"{name} and {other}: expected one tensor, got different values"
            for other in others
            if not _equal(stored[name], stored[other])
        ]
        found.append((path, stored[name], not isinstance(tensor, Buffer)))
    if missing or wrong:
        problems = [f"missing {few(missing, _SHOWN)}"] if missing else []
        problems += [f"unused {few(unused, _SHOWN)}"] if missing and unused else []
        raise ReadError(
            f"{where}: weights do not fit config.json: {'; '.join(problems + wrong)}"
        )
    return found, [f"not used by this model: {few(unused, _SHOWN)}"] if unused else []


def _equal(one: LazyTensor, other: LazyTensor) -> bool:
    return one.shares_memory(other) or np.array_equal(one.read(), other.read())


def _path(name: str, paths: Mapping[str, Any], base: str) -> str | None:
    for pattern, today in _RENAMED:
        renamed = pattern.sub(today, name)
        name = renamed if renamed != name and name not in paths else name
    for path in (name, f"{base}.{name}", name.removeprefix(f"{base}.")):
        if path in paths:
            return path
    return None
