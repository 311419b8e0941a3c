"""Guards of plan files: whether a model is unchanged since its plans were bound to it.

Plans hold values that its parameters were packed into, and were made for its modules as
they were. Every call looks: by identity; closer where that differs.
"""

from __future__ import annotations

from typing import Any

from burnish.backend import Device
from burnish.kernels.same import Same
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored, version

_CPU = Device("cpu")
_SETTINGS = (bool, int, float, str, type(None), Device)


class Unchanged:
    """Remembers a model's attributes, and what its parameters and buffers hold.

    lent: by a parameter's id, what lends it values that it may take up at any time.
    """

    def __init__(self, model: Module, lent: dict[int, Any]):
        self._lent = lent
        self._holders: list[tuple[str, Any]] = []
        for path, module in model.named_modules():
            self._note(f"{type(module).__name__} {path}".rstrip(), vars(module))
        self._named = list(model.named_tensors())
        self._items: list[Stored] = [item for _, item in self._named]
        self._take()

    def _note(self, where: str, holder: Any) -> None:
        self._holders.append((where, holder))
        for value in _values(holder):
            if isinstance(value, list | tuple | dict):
                self._note(where, value)

    def _take(self) -> None:
        """Take everything as it is now."""
        holders = [holder for _, holder in self._holders]
        self._was = [dict(_pairs(holder)) for holder in holders]
        self._seen = [*map(version, self._items)]
        self._on_cpu = all(item.device is _CPU for item in self._items)
        self._is_same = Same(holders, self._items, ("_value", "device"))

    def __call__(self) -> str:
        """The change, in words; "" where there is none."""
        if self._on_cpu and self._is_same():
            return ""
        why = self._difference()
        if not why:
            self._take()
        return why

    def _difference(self) -> str:
        for (where, holder), was in zip(self._holders, self._was, strict=True):
            now = dict(_pairs(holder))
            for name in dict.fromkeys((*was, *now)):
                if not _same(name, was, now):
                    return f"{where}: its {name!r} has changed"
        for (path, item), seen in zip(self._named, self._seen, strict=True):
            if item.device is not _CPU:
                return f"{path} is on '{item.device}'"
            lender = self._lent.get(id(item))
            held = version(item)
            if held is seen or (lender is not None and held is lender.made):
                continue
            if lender is None or not item.is_lent(lender):
                return f"{path} has other values"
        return ""


def _same(name: Any, was: dict[Any, Any], now: dict[Any, Any]) -> bool:
    before, behind = was.get(name), now.get(name)
    if before is behind:
        return name == "device" or (name in was) is (name in now)
    if name == "device" and behind is _CPU and name not in was:
        return True
    settings = isinstance(before, _SETTINGS) and type(before) is type(behind)
    return settings and before == behind


def _pairs(holder: Any) -> Any:
    return holder.items() if isinstance(holder, dict) else enumerate(holder)


def _values(holder: Any) -> Any:
    return holder.values() if isinstance(holder, dict) else holder
