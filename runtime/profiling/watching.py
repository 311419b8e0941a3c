"""around: intercept a method's calls in one thread, within a `with` block."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def around(kind: type, name: str, callback: Callable[..., Any]) -> Iterator[None]:
    """In the `with` block a method's calls are `callback(call, self, args)`.

    call: a `functools.partial` of the method with its arguments.
    """
    original = vars(kind)[name]
    thread = threading.get_ident()

    @functools.wraps(original)
    def watched(self: Any, *args: Any, **options: Any) -> Any:
        call = functools.partial(original, self, *args, **options)
        if threading.get_ident() != thread:
            return call()
        return callback(call, self, args)

    setattr(kind, name, watched)
    try:
        yield
    finally:
        setattr(kind, name, original)
