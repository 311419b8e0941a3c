"""Host tables copied to a GPU once, so that CUDA graphs can read them."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

_LARGEST, _MOST = 1 << 22, 1 << 26  # bytes of a table, and of all that are kept
_lock = threading.Lock()
_kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_size = 0


class _Reader(threading.local):
    kept: dict[int, Any] | None = None


_reader = _Reader()


@contextlib.contextmanager
def kept_in(kept: dict[int, Any]) -> Iterator[None]:
    """In the `with` block tables that this thread asks for are put in `kept` too."""
    _reader.kept = kept
    try:
        yield
    finally:
        _reader.kept = None


def on_gpu(table: np.ndarray[Any, Any], index: int) -> Any:
    """The values of a table on GPU number `index`, in an array that is not to change.

    What was used longest ago is let go of.
    """
    global _size
    import cupy

    table = np.ascontiguousarray(table)
    with cupy.cuda.Device(index):
        if table.nbytes > _LARGEST:
            return cupy.asarray(table)
        key = (index, table.dtype.str, table.shape, table.tobytes())
        with _lock:
            if (found := _kept.get(key)) is not None:
                _kept.move_to_end(key)
        if found is not None:
            if _reader.kept is not None:
                _reader.kept[id(found)] = found
            return found
        made = cupy.asarray(table)
        with _lock:
            _kept[key] = made
            _size += table.nbytes
            while _size > _MOST:
                _, gone = _kept.popitem(last=False)
                _size -= gone.nbytes
        return made
