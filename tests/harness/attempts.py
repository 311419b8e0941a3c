"""Tests that measure time or memory: what else the machine does may cost twice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

ATTEMPTS = 3

Given = ParamSpec("Given")


def measured(test: Callable[Given, None]) -> Callable[Given, None]:
    """The test, which fails where each of three attempts does.

    It is called again with the same fixtures.
    """

    @functools.wraps(test)
    def repeated(*args: Given.args, **kwargs: Given.kwargs) -> None:
        for _ in range(ATTEMPTS - 1):
            try:
                return test(*args, **kwargs)
            except AssertionError:
                continue
        return test(*args, **kwargs)

    return repeated
