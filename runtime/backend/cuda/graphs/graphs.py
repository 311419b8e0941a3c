"""CUDA graphs: the launches of calls, captured once and replayed as a whole."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from burnish.backend.cuda.graphs import tables
from burnish.backend.cuda.libraries import workspace

_alone = threading.RLock()
"""Held while graphs are made: one thread at a time does so."""


class Room:
    """Memory and order shared by graphs that never run at the same time on a GPU.

    Their arrays are in one pool of memory: what one has let go of another writes to. So
    a run of any of them begins behind the last one's end, whatever streams they are on.
    """

    def __init__(self, index: int, precision: str):
        import cupy

        self.index, self.precision = index, precision
        self.kept: dict[Any, Any] = {}  # arrays derived from parameters, by their `id`
        self.scale: Any = None  # of losses, in "fp16"
        self._tables: dict[int, Any] = {}  # that the graphs read
        self._lock = threading.RLock()
        with cupy.cuda.Device(index):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._pool = cupy.cuda.MemoryPool()
            self._scratch = cupy.empty(workspace.WORKSPACE, "uint8")
            self._done = cupy.cuda.Event(disable_timing=True)
        self._last: Any = None  # the stream, and the thread, of the last run

    @property
    def nbytes(self) -> int:
        """How much memory the pool has."""
        return int(self._pool.total_bytes())

    def captured(self, work: Callable[[], Any]) -> Any:
        """A graph of what `work` launches; nothing is computed.

        Raises what work raises: a call that waits for the GPU, or whose library cannot
        be captured.
        """
        import cupy

        stream = self._stream
        kept = tables.kept_in(self._tables)
        with (
            stream,
            self.allocating(),
            self.computing(),
            _without_the_host(),
            kept,
        ):
            stream.begin_capture()
            try:
                work()
            except BaseException:
                with contextlib.suppress(Exception):  # the capture is invalid
                    stream.end_capture()
                self._stream = cupy.cuda.Stream(non_blocking=True)
                raise
            return stream.end_capture()

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """In the `with` block this thread computes on the GPU as the graphs do."""
        import cupy

        planned = workspace.planned(self._scratch, self.precision == "tf32")
        with cupy.cuda.Device(self.index), planned:
            yield

    def allocating(self) -> Any:
        """In the `with` block this thread's arrays are made in the pool."""
        import cupy

        return cupy.cuda.using_allocator(self._pool.malloc)

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """In the `with` block no other graphs are made; the GPU is idle at its ends.

        What eager calls have let go of goes back to the GPU, for the graphs' own pool.
        """
        import cupy

        with self._lock, _alone, cupy.cuda.Device(self.index):
            cupy.cuda.runtime.deviceSynchronize()
            cupy.get_default_memory_pool().free_all_blocks()
            yield
            cupy.cuda.runtime.deviceSynchronize()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Order the launches of the `with` block after every earlier run."""
        import cupy

        with self._lock, cupy.cuda.Device(self.index):
            stream = cupy.cuda.get_current_stream()
            here = stream.ptr, threading.get_ident()
            if here != self._last:
                stream.wait_event(self._done)
                self._last = here
            try:
                yield
            finally:
                self._done.record(stream)


@contextlib.contextmanager
def _without_the_host() -> Iterator[None]:
    """In the `with` block this thread copies no arrays of the host: that raises.

    A graph would copy again, at each launch, what is then in the memory that CuPy has
    let go of.
    """
    import cupy

    pool, here = cupy.get_default_pinned_memory_pool(), threading.get_ident()

    def refused(size: int) -> Any:
        if threading.get_ident() == here:
            raise RuntimeError("it copies an array of the host")
        return pool.malloc(size)

    cupy.cuda.set_pinned_memory_allocator(refused)
    try:
        yield
    finally:
        cupy.cuda.set_pinned_memory_allocator(pool.malloc)


def copied_into(target: Any, source: Any) -> None:
    """Give a contiguous array the values of another of its shape and dtype."""
    if source._c_contiguous:
        target.data.copy_from_device_async(source.data, target.nbytes)
    else:
        target[...] = source


def copy(source: Any) -> Any:
    """The values of an array in memory of their own."""
    import cupy

    made = cupy.ndarray(source.shape, source.dtype)
    copied_into(made, source)
    return made


def joined(arrays: list[Any]) -> Any:
    """Arrays concatenated along their first axis."""
    import cupy

    return cupy.concatenate(arrays)


def contiguous(array: Any) -> Any:
    """The array itself if it is contiguous, else a contiguous copy."""
    import cupy

    return cupy.ascontiguousarray(array).reshape(array.shape)


def launches(graph: Any) -> int:
    """The number of launches and copies in a graph."""
    import ctypes

    count = ctypes.c_size_t()
    library = ctypes.CDLL("libcuda.so.1")
    status = library.cuGraphGetNodes(
        ctypes.c_void_p(graph.graph), None, ctypes.byref(count)
    )
    if status:
        raise RuntimeError(f"cuGraphGetNodes: status {status}")
    return count.value


def seconds(graph: Any, times: int) -> float:
    """The minimum time of a launch."""
    import cupy

    best = float("inf")
    for _ in range(times):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        graph.launch()
        end.record()
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return best
