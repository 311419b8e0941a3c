"""Storages: the runs of bytes that tensors of a PyTorch file are views of."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import BudgetError, RecordError
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.pytorch.dtypes import Element, decoded
from burnish.serialize.pytorch.records import Refused

_COPIED = 12  # four kilobytes that must be copied are a step


class _Copy(NamedTuple):
    """Elements that could not be viewed in place; NumPy's views keep their owner."""

    owner: weakref.ref[np.ndarray]
    dtype: np.dtype[Any]


def _viewed(owner: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    array: np.ndarray = owner.reshape(-1).view(dtype)
    array.flags.writeable = False
    return array


class Storage:
    """Bytes of the file that are fetched when a tensor of theirs is read.

    fetch: gives the bytes; nbytes: how many; swap: elements are in big-endian order;
    budget: of memory beyond the file's own bytes.
    """

    __slots__ = ("_copies", "budget", "fetch", "nbytes", "swap", "where")

    def __init__(
        self,
        fetch: Callable[[], Any],
        nbytes: int,
        where: str,
        budget: Budget,
        swap: bool = False,
    ):
        self.fetch = fetch
        self.nbytes = nbytes
        self.where = where
        self.budget = budget
        self.swap = swap
        self._copies: dict[Element, _Copy] = {}

    def array(self, kind: Element) -> np.ndarray:
        """All whole elements, in one axis; one copy for all where one must be made."""
        if kind.read_as is None:
            raise RecordError(
                f"{self.where}: elements of type {kind.name} are packed; "
                f"save the model dequantized"
            )
        if (copy := self._copies.get(kind)) and (owner := copy.owner()) is not None:
            return _viewed(owner, copy.dtype)
        whole = self.nbytes - self.nbytes % (kind.bits // 8)
        raw = np.frombuffer(self.fetch(), np.uint8, whole)
        array = decoded(raw, kind, self.where, self.swap)
        if not np.may_share_memory(array, raw):
            self.budget.step(whole >> _COPIED)
        owner = array if array.base is None else array.base
        if isinstance(owner, np.ndarray):
            self._copies[kind] = _Copy(weakref.ref(owner), array.dtype)
        return _viewed(array, array.dtype)


class StorageView(Storage):
    """A part of another storage, from byte `start` on."""

    __slots__ = ("root", "start")

    root: Storage
    start: int

    def __init__(self, root: Storage, start: int, nbytes: int):
        if start < 0 or nbytes < 0 or start + nbytes > root.nbytes:
            raise Refused(f"a view of bytes {start} to {start + nbytes} of a storage")
        whole: Storage = root
        if isinstance(root, StorageView):
            whole, start = root.root, root.start + start
        super().__init__(self._part, nbytes, root.where, root.budget, root.swap)
        self.root = whole
        self.start = start

    def _part(self) -> Any:
        return memoryview(self.root.fetch())[self.start : self.start + self.nbytes]


class TypedStorage:
    """A storage seen as elements of one type."""

    __slots__ = ("kind", "storage")

    def __init__(self, storage: Storage, kind: Element):
        self.storage = storage
        self.kind = kind


class StoredTensor(LazyTensor):
    """A view of a storage: offset and strides in elements.

    Raises Refused unless every element is within the storage.
    """

    __slots__ = ("conj", "counted", "kind", "neg", "offset", "storage", "strides")

    def __init__(
        self,
        storage: Storage,
        kind: Element,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ):
        _check(storage, kind, offset, shape, strides)
        super().__init__(kind.name, shape)
        self.storage = storage
        self.kind = kind
        self.offset = offset
        self.strides = strides
        self.conj = self.neg = self.counted = False

    def read(self) -> np.ndarray:
        if self.nbytes > self.storage.nbytes:
            self._count()
        base = self.storage.array(self.kind)
        step = base.itemsize
        array: np.ndarray = np.ndarray(
            self.shape,
            base.dtype,
            base,
            self.offset * step if self.size else 0,
            tuple(stride * step for stride in self.strides),
        )
        if not (self.conj or self.neg):
            return array
        with np.errstate(all="ignore"):
            array = -array if self.neg else array
            array = array.conj() if self.conj else array
        array.flags.writeable = False
        return array

    def _count(self) -> None:
        """Count the memory of a tensor that a few bytes represent."""
        budget = self.storage.budget
        if not self.counted and not budget.fits(self.nbytes):
            raise BudgetError(
                f"{self.storage.where}: {self.storage.nbytes} bytes stand for a tensor "
                f"of shape {shown(list(self.shape))}; that is refused as too large"
            )
        if not self.counted:
            budget.take(self.nbytes)
            self.counted = True

    @property
    def memory(self) -> object:
        storage = self.storage
        return storage.root if isinstance(storage, StorageView) else storage

    def _bits(self) -> int:
        return self.kind.bits


_LARGEST = (1 << 62) - 1


def sizes(value: Any, what: str) -> tuple[int, ...]:
    """A tuple of at most 64 sizes out of a pickle."""
    if type(value) not in (tuple, list) or len(value) > 64:
        raise Refused(f"{what} that is no tuple of at most 64 integers")
    if not all(type(n) is int and 0 <= n <= _LARGEST for n in value):
        raise Refused(f"{what} with something else than sizes: {shown(value, 60)}")
    return tuple(value)


def _check(
    storage: Storage,
    kind: Element,
    offset: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> None:
    if type(offset) is not int or not 0 <= offset <= _LARGEST:
        raise Refused(f"an offset of {shown(offset, 30)}")
    if len(shape) != len(strides):
        raise Refused(f"shape {shown(list(shape))} with strides {shown(list(strides))}")
    if 0 in shape:
        return
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    held = storage.nbytes * 8 // kind.bits
    if last >= held:
        raise Refused(
            f"shape {shown(list(shape))}, strides {shown(list(strides))}, offset "
            f"{offset} reach "
            f"element {last} of a storage with {held}"
        )
