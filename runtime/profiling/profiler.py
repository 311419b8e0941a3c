"""profile: what a `with` block calls, timed, with the memory of its results."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from burnish._engine.pytree import leaves
from burnish.errors import BurnishError
from burnish.nn.core.module import Module
from burnish.operator import Operator
from burnish.optim.core.optimizer import Optimizer
from burnish.plan import Compiled
from burnish.profiling.memory import Live
from burnish.profiling.rows import Row, by_module, by_operator
from burnish.profiling.shown import text
from burnish.profiling.spans import Kind, Span
from burnish.profiling.trace import save
from burnish.profiling.watching import around
from burnish.vjp import Rules

_running = threading.Lock()


class Profile:
    """The record of a `profile()` block.

    spans: every call, each behind the one that it is within. parameters: bytes of
    parameters and buffers of the modules that were called.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.parameters = 0

    @property
    def total(self) -> int:
        """Nanoseconds in all outermost calls."""
        return sum(span.duration for span in self.spans if span.parent < 0)

    @property
    def live(self) -> int:
        """The most bytes of results that were alive at one time."""
        return max((span.live for span in self.spans), default=0)

    def modules(self) -> list[Row]:
        """A row for each module, below the one that called it."""
        return by_module(self.spans)

    def operators(self) -> list[Row]:
        """A row for each operator and gradient, the most own time first."""
        return by_operator(self.spans)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that chrome://tracing and https://ui.perfetto.dev open."""
        save(self.spans, path)

    def __str__(self) -> str:
        return text(self)

    __repr__ = __str__


def profile() -> AbstractContextManager[Profile]:
    """Time every module, operator, gradient, plan and optimizer step of this thread.

    Memory is counted from the arrays that operators give; what a kernel needs only
    while it runs is not. On a GPU each operator is waited for, so that its time is its
    own; the sum is more than a run without a profile takes.

    Raises BurnishError where a profile is running already.
    """
    return _profiled()


@contextlib.contextmanager
def _profiled() -> Iterator[Profile]:
    if not _running.acquire(blocking=False):
        raise BurnishError("profile: one is running already; end it first")
    made = Profile()
    recorder = _Recorder(made)
    try:
        with contextlib.ExitStack() as stack:
            for kind, name, callback in (
                (Module, "__call__", recorder.module),
                (Operator, "_compute", recorder.operator),
                (Rules, "pull", recorder.gradient),
                (Optimizer, "step", recorder.optimizer),
                (Compiled, "__call__", recorder.plan),
            ):
                stack.enter_context(around(kind, name, callback))
            yield made
    finally:
        _running.release()


class _Recorder:
    """Writes spans down as calls begin and end."""

    def __init__(self, profile: Profile):
        self.profile, self.live = profile, Live()
        self.began = time.perf_counter_ns()
        self.open: list[int] = []
        self.paths: dict[int, tuple[Module, str]] = {}

    def module(self, call: Any, module: Module, args: Any) -> Any:
        return self._span(call, self._path(module), "module", type(module).__name__)

    def operator(self, call: Any, operator: Any, args: Any) -> Any:
        arrays = _arrays(args[0])
        return self._span(call, operator.__name__, "operator", _shapes(arrays), arrays)

    def gradient(self, call: Any, operator: Any, args: Any) -> Any:
        arrays = _arrays(args[:3])
        return self._span(call, operator.__name__, "gradient", _shapes(arrays), arrays)

    def optimizer(self, call: Any, optimizer: Any, args: Any) -> Any:
        return self._span(call, type(optimizer).__name__, "optimizer", "")

    def plan(self, call: Any, compiled: Any, args: Any) -> Any:
        function = compiled.__wrapped__
        name = getattr(function, "__name__", type(function).__name__)
        return self._span(call, name, "plan", "")

    def _span(
        self, call: Any, name: str, kind: Kind, detail: str, given: Any = ()
    ) -> Any:
        spans, live = self.profile.spans, self.live
        for array in given:
            live.known(array)
        before, live.most = live.most, live.bytes
        parent = self.open[-1] if self.open else -1
        span = Span(name, kind, detail, self._now(), parent)
        self.open.append(len(spans))
        spans.append(span)
        results: list[Any] = []
        try:
            made = call()
            if kind in ("operator", "gradient"):
                results = _arrays(made)
                _wait_for(results)
            return made
        finally:
            span.end = self._now()
            self.open.pop()
            span.allocated += sum(map(live.made, results))
            span.live = live.most
            live.most = max(before, live.most)
            if parent >= 0:
                spans[parent].allocated += span.allocated

    def _now(self) -> int:
        return time.perf_counter_ns() - self.began

    def _path(self, module: Module) -> str:
        """The path of a module below the outermost one that was called."""
        if id(module) not in self.paths:
            outermost = not any(
                self.profile.spans[place].kind == "module" for place in self.open
            )
            if outermost:
                self.profile.parameters += module.num_bytes
                for path, each in module.named_modules():
                    self.paths.setdefault(id(each), (each, path))
            else:  # held where nobody looks for modules
                self.paths[id(module)] = (module, type(module).__name__)
        return self.paths[id(module)][1]


def _arrays(value: Any) -> list[Any]:
    return [each for each in leaves(value) if hasattr(each, "nbytes")]


def _shapes(arrays: list[Any]) -> str:
    """ "float32[1, 3, 224, 224], float32[64, 3, 7, 7]" """
    return ", ".join(f"{each.dtype}[{str(list(each.shape))[1:-1]}]" for each in arrays)


def _wait_for(arrays: list[Any]) -> None:
    """Wait for the kernels that compute arrays on a GPU."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(each, cupy.ndarray) for each in arrays):
        cupy.cuda.get_current_stream().synchronize()
