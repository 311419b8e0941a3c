"""Import rules that a test registers are gone behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from burnish.codegen.ops import registry


@contextmanager
def own_rules() -> Iterator[None]:
    """Within it operators may get rules; behind it they have those of before."""
    before = {key: list(rules) for key, rules in registry.items()}
    try:
        yield
    finally:
        registry.clear()
        registry.update(before)
