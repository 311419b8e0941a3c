"""Filter: select tensors of a file or a module by path."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Predicate = Callable[[str, Any], bool]


class Filter:
    """A choice of tensors by path, parameters and buffers alike.

        encoder = Filter.from_regex(r"^encoder\\.") - Filter.from_paths("encoder.norm")

    `a | b` takes what either takes, `a & b` what both take, `a - b` what a alone takes.
    Paths are the module's: after renaming.
    """

    def __init__(self, takes: Predicate):
        self._takes = takes

    def __call__(self, path: str, tensor: Any) -> bool:
        """Whether the tensor at this path is taken."""
        return self._takes(path, tensor)

    @classmethod
    def all(cls) -> Filter:
        """Every tensor."""
        return cls(lambda path, tensor: True)

    @classmethod
    def from_regex(cls, *patterns: str) -> Filter:
        """Tensors in whose path one of the regular expressions is found."""
        compiled = [re.compile(pattern) for pattern in patterns]
        return cls(lambda path, _: any(pattern.search(path) for pattern in compiled))

    @classmethod
    def from_paths(cls, *paths: str) -> Filter:
        """Tensors by full path; a module's path means all that is in it."""
        return cls(
            lambda path, _: any(path == p or path.startswith(f"{p}.") for p in paths)
        )

    @classmethod
    def from_predicate(cls, *predicates: Predicate) -> Filter:
        """Tensors for which one of the predicates `(path, tensor)` is true."""
        return cls(lambda path, tensor: any(yes(path, tensor) for yes in predicates))

    def __or__(self, other: Filter) -> Filter:
        return Filter(lambda path, tensor: self(path, tensor) or other(path, tensor))

    def __and__(self, other: Filter) -> Filter:
        return Filter(lambda path, tensor: self(path, tensor) and other(path, tensor))

    def __sub__(self, other: Filter) -> Filter:
        return Filter(
            lambda path, tensor: self(path, tensor) and not other(path, tensor)
        )
