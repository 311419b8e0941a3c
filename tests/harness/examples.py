"""How many examples a property is tried with: more where a profile asks for it."""

from __future__ import annotations

from hypothesis import settings

_PLAIN = 100
"""The number of examples that hypothesis tries by default."""


def examples(count: int) -> int:
    """`count` in a plain run, as many times that as the profile's is of a plain one's.

    `pytest --hypothesis-profile thorough` tries five times as many.
    """
    return count * settings().max_examples // _PLAIN
