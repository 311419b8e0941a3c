"""Stop a running learner from another thread, or with Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupter:
    """`stop(reason)` ends a run after the batch at hand, with everything saved."""

    def __init__(self) -> None:
        self.reason: str | None = None

    @property
    def stopped(self) -> bool:
        return self.reason is not None

    def stop(self, reason: str = "stopped") -> None:
        """Ask the run to stop; the first reason stays."""
        self.reason = self.reason or reason

    def reset(self) -> None:
        """Be ready for another run."""
        self.reason = None

    @contextmanager
    def on_keyboard(self) -> Iterator[None]:
        """Ctrl-C stops the run cleanly in this block; a second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: Any) -> None:
            if self.stopped:
                raise KeyboardInterrupt
            self.stop("interrupted by the keyboard")

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
