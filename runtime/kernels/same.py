"""Guards of plans: whether Python objects are unchanged, checked before every run.

The library does it where one is loaded, some nanoseconds an object; Python elsewhere.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import is_
from types import MemberDescriptorType
from typing import Any

from burnish.kernels.interpreter import is_cpython
from burnish.kernels.library import Library, loaded

_FUNCTIONS = (
    "PyDict_Next",
    "PyList_Size",
    "PyList_GetItem",
    "PyObject_GetAttr",
    "Py_DecRef",
    "PyErr_Clear",
)
"""The functions that the library calls, in the order of `objects_record`."""

_LOCK = ("PyEval_SaveThread", "PyEval_RestoreThread")
"""Those that release and take the interpreter's lock, in that of `guarded_record`."""


_ABSENT = object()


class Same:
    """Remembers what holders and owners hold now; called, whether they hold it still.

    Objects are compared by identity: where one is another object of the same value the
    answer is False, and a closer look is due.

    holders: dicts, lists and tuples. owners: objects that have all attributes `names`.
    """

    def __init__(
        self, holders: Sequence[Any], owners: Sequence[Any], names: Sequence[str]
    ):
        self._dicts = [each for each in holders if isinstance(each, dict)]
        self._lists = [each for each in holders if isinstance(each, list)]
        self._held = [*self._holds()]
        self._sizes = [*map(len, self._dicts), *map(len, self._lists)]
        self._owners = owners
        self._names = [sys.intern(name) for name in names]
        self._were = [[*self._attributes(name)] for name in self._names]
        self._record: Any = None
        self._function: Any = None
        self._tables: Any = None
        self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        """A copy holds other objects: Python looks at them."""
        return {**vars(self), "_record": None, "_function": None, "_tables": None}

    def __call__(self) -> bool:
        if self._function is not None:
            return bool(self._function(self._record))
        own = chain(map(len, self._dicts), map(len, self._lists))
        return (
            [*own] == self._sizes
            and all(map(is_, self._holds(), self._held))
            and all(
                all(map(is_, self._attributes(name), were))
                for name, were in zip(self._names, self._were, strict=True)
            )
        )

    @property
    def record(self) -> Any:
        """What the library goes by; None where Python compares."""
        return self._record

    def _attributes(self, name: str) -> Iterator[Any]:
        return (getattr(owner, name, _ABSENT) for owner in self._owners)

    def _holds(self) -> Any:
        own = map(dict.values, self._dicts)
        return chain(chain.from_iterable(own), chain.from_iterable(self._lists))

    def _prepare(self) -> None:
        """Write down for the library where everything is."""
        library = loaded()
        if library is None or not is_cpython():
            return
        import ctypes

        attributes = chain.from_iterable(zip(*self._were, strict=True))
        groups = (self._dicts, self._lists, self._held, self._owners, self._names)
        known = [*map(id, chain(*groups, attributes))]
        objects = (ctypes.c_void_p * len(known))(*known)
        counts = (ctypes.c_int64 * len(self._sizes))(*self._sizes)
        looked_at: tuple[Sequence[Any], ...] = (self._dicts, self._lists, *groups[3:])
        sizes = [len(each) for each in looked_at]
        every = [slot_of(o, name) for o in self._owners for name in self._names]
        slots = (ctypes.c_int64 * len(every))(*every)
        self._tables = objects, counts, slots
        words = (*functions(_FUNCTIONS), *sizes, *map(ctypes.addressof, self._tables))
        self._record = (ctypes.c_int64 * len(words))(*words)
        self._function = library.same


def slot_of(owner: Any, name: str) -> int:
    """Where the object has this attribute of `__slots__`, in bytes; -1 for others.

    Asked for by name it takes the interpreter much longer.
    """
    kind: Any = type(owner)
    found = getattr(kind, name, None)
    is_plain = kind.__getattribute__ is object.__getattribute__
    if not isinstance(found, MemberDescriptorType) or not is_plain:
        return -1
    return _slot(found)


@functools.cache
def _slot(descriptor: MemberDescriptorType) -> int:
    """Where it is in a new object that holds something there: at one place, or -1."""
    import ctypes

    kind, held = descriptor.__objclass__, object()
    try:
        made: Any = object.__new__(kind)
        descriptor.__set__(made, held)
    except (TypeError, AttributeError):  # of a class in C, or read-only
        return -1
    size = kind.__basicsize__ // ctypes.sizeof(ctypes.c_void_p)
    words = (ctypes.c_void_p * size).from_address(id(made))
    places = [i for i, word in enumerate(words) if word == id(held)]
    return places[0] * ctypes.sizeof(ctypes.c_void_p) if len(places) == 1 else -1


def guarded(
    looks: Sequence[Same], library: Library, first: int, count: int, threads: int
) -> Callable[[int], int]:
    """A function that runs records on the table of arrays at an address, if all of
    `looks` hold, and returns whether they do.

    first: the address of the first of `count` records.
    """
    records = [look.record for look in looks]
    if not all(records):

        def run(table: int) -> bool:
            holds = all(look() for look in looks)
            if holds:
                library.run(first, count, table, threads)
            return holds

        return run
    import ctypes

    addresses = map(ctypes.addressof, records)
    words = (*functions(_LOCK), first, count, threads, len(records), *addresses)
    return partial(library.run_if_same, (ctypes.c_int64 * len(words))(*words))


def functions(names: Iterable[str]) -> list[int]:
    """The addresses of the interpreter's functions."""
    import ctypes

    given = (getattr(ctypes.pythonapi, name) for name in names)
    return [ctypes.cast(each, ctypes.c_void_p).value or 0 for each in given]
