"""Checks of assignments to a module's attributes: no parameter is lost by one.

An attribute that holds parameters, buffers or modules takes its like: values of its
shape and dtype, a module in place of a module, a list that has all its places. Else
InputError is raised and nothing changes. `replace` puts anything there on purpose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from burnish.backend import Device
from burnish.errors import InputError
from burnish.nn.core.fit import number_kind
from burnish.nn.core.param import Param, Stored

_CONTAINERS = (list, tuple, dict)
_MISSING = object()
_being_built: set[int] = set()
"""Modules in their constructor, by id: what their class declares is still open."""


class Holder:
    """An object whose attributes hold parameters, buffers and others of its kind."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _constructor(cls.__init__)  # type: ignore[method-assign]

    def named_tensors(self) -> Iterator[tuple[str, Stored]]:
        """Parameters and buffers with their paths."""
        raise TypeError(f"{type(self).__name__} does not say what it holds")

    def __setattr__(self, name: str, value: Any) -> None:
        old = vars(self).get(name)
        if id(self) in _being_built:
            if isinstance(old, Stored) and not _is_held(value) and value is not None:
                value = _taken(old, value, f"{type(self).__name__}.{name}")
            super().__setattr__(name, value)
            return
        where = f"{type(self).__name__}.{name}"
        if value is not old and value is not getattr(type(self), name, _MISSING):
            value = _taken(old, value, where)
        super().__setattr__(name, kept(value, where))

    def __delattr__(self, name: str) -> None:
        if _has_tensors(vars(self).get(name)):
            raise _lost(f"{type(self).__name__}.{name}", "del")
        super().__delattr__(name)

    def replace(self, name: str, value: Any) -> Self:
        """Put something else where an attribute holds parameters, buffers or modules.

        value: a Param or Buffer of any shape, a module, a list, tuple or dict of them,
        or None, which removes the attribute's value. Assignment alone sets values.
        """
        where = f"{type(self).__name__}.{name}"
        if next(held(vars(self).get(name)), None) is None:
            raise InputError(
                f"replace: expected the name of a parameter, buffer or module, "
                f"got {name!r}, which {type(self).__name__} does not have"
            )
        if not (value is None or isinstance(value, (Holder, Stored, *_CONTAINERS))):
            raise InputError(
                f"replace: expected nn.Param, nn.Buffer, a module, a list of modules "
                f"or None for {where}, got {_described(value)}"
            )
        vars(self)[name] = kept(value, where)
        return self


def _constructor(build: Callable[..., None]) -> Callable[..., None]:
    """A constructor behind which an object's lists and dicts are kept too."""

    @functools.wraps(build)
    def construct(self: Any, *args: Any, **options: Any) -> None:
        if id(self) in _being_built:  # by the constructor of a class that extends it
            build(self, *args, **options)
            return
        _being_built.add(id(self))
        try:
            build(self, *args, **options)
        finally:
            _being_built.discard(id(self))
        own, made = vars(self), dict[Any, Any]()
        for name, value in own.items():
            if isinstance(value, _CONTAINERS):
                where = f"{type(self).__name__}.{name}"
                own[name] = made.setdefault(id(value), kept(value, where))

    return construct


# --- modules and tensors among attributes ---


def named_held(
    attributes: Mapping[str, Any], within: tuple[Any, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """Every module and stored tensor among attributes, through lists and dicts.

    within: the containers that they are in, which may hold themselves.
    """
    for name, value in attributes.items():
        if type(value) in _BARE:
            continue
        if isinstance(value, _HELD):
            yield name, value
        elif isinstance(value, _CONTAINERS):
            if any(value is each for each in within):
                continue
            inside = {str(key): item for key, item in pairs(value)}
            for path, item in named_held(inside, (*within, value)):
                yield f"{name}.{path}", item


def held(value: Any) -> Iterator[Any]:
    """Every module and stored tensor that a value is or holds."""
    return (item for _, item in named_held({"": value}))


def _is_held(value: Any) -> bool:
    return isinstance(value, _HELD)


_HELD = (Holder, Stored)
_BARE = frozenset((int, float, bool, str, type(None), Device))
"""Types of most other attributes: they hold nothing."""


def _has_tensors(value: Any) -> bool:
    return any(
        isinstance(item, Stored) or next(item.named_tensors(), None) is not None
        for item in held(value)
    )


def pairs(value: Any) -> list[tuple[Any, Any]]:
    """The items of a list, tuple or dict with their places or keys."""
    return [*value.items()] if isinstance(value, dict) else [*enumerate(value)]


# --- what may come where something is ---


def _taken(old: Any, new: Any, where: str) -> Any:
    """The value that replaces `old` when `new` is assigned there.

    Stored tensors are assigned values and stay. Raises InputError, before anything is
    changed, where something with parameters or buffers would be lost.
    """
    values: list[tuple[Stored, Any]] = []
    made = _fitted(old, new, where, values)
    for item, value in values:
        item.assign(value, item.dtype)
    return made


def _fitted(old: Any, new: Any, where: str, values: list[tuple[Stored, Any]]) -> Any:
    """`new` with the stored tensors of `old` where it has values for them."""
    if new is old or not _has_tensors(old):
        return new
    if isinstance(old, Stored):
        old.check_assignment(new, where)
        if isinstance(new, Stored):
            return _in_place_of(old, new, where)
        values.append((old, new if hasattr(new, "dtype") else np.asarray(new)))
        return old
    if isinstance(old, Holder):
        if not isinstance(new, Holder):
            raise _lost(where, _described(new), "a module")
        return new
    kind = dict if isinstance(old, dict) else list | tuple
    if not isinstance(new, kind):
        raise _lost(
            where, _described(new), "a dict" if kind is dict else "a list or tuple"
        )
    items = dict(pairs(new))
    shorter = not isinstance(old, dict) and len(items) < len(old)
    for place, item in pairs(old):
        if not _has_tensors(item):
            continue
        moved = shorter and any(items.get(place) is other for other in old)
        if place not in items or (moved and items[place] is not item):
            raise _lost(f"{where}[{place!r}]", "nothing", "a module or tensor")
        items[place] = _fitted(item, items[place], f"{where}[{place!r}]", values)
    same = all(items[place] is item for place, item in pairs(new))
    return new if same else rebuilt(new, items)


def _in_place_of(old: Stored, new: Stored, where: str) -> Stored:
    """The parameter that replaces another, moved to the old parameter's device."""
    if isinstance(old, Param) is not isinstance(new, Param):
        raise _lost(where, _described(new), f"a {type(old).__name__}")
    if number_kind(new.dtype) != number_kind(old.dtype):
        raise _lost(where, f"{new.dtype}", f"a dtype like {old.dtype}")
    if new.device is not old.device:
        new.place(old.device)
    return new


def _lost(where: str, got: str, expected: str = "") -> InputError:
    owner, _, path = where.partition(".")
    name = path.partition("[")[0]
    wanted = f"expected {expected} there, got {got}; " if expected else ""
    return InputError(
        f"{where} holds parameters or buffers, which would be lost: {wanted}"
        f"{owner}.replace({name!r}, ...) changes it on purpose, None takes it away"
    )


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


# --- lists and dicts ---


def kept(value: Any, where: str) -> Any:
    """`value` with lists and dicts that keep the modules and tensors they hold."""
    if isinstance(value, _Kept) or next(held(value), None) is None:
        return value
    if not isinstance(value, _CONTAINERS):
        return value
    items = {key: kept(item, f"{where}[{key!r}]") for key, item in pairs(value)}
    made = rebuilt(value, items)
    if not isinstance(made, tuple):
        made = KeptList(made) if isinstance(made, list) else KeptDict(made)
        made.where = where
    return made


def rebuilt(value: Any, items: dict[Any, Any]) -> Any:
    """A list, tuple or dict like `value` of other items, by place or key."""
    if isinstance(value, _Kept):
        kind: Any = type(value)
        made = kind(items if isinstance(value, dict) else items.values())
        made.where = value.where
        return made
    if isinstance(value, dict):
        return items
    if isinstance(value, list):
        return list(items.values())
    return getattr(type(value), "_make", type(value))(items.values())


class _Kept:
    """where: the attribute that holds it, as errors call it."""

    where = "list"


def _checked(kind: type, name: str) -> Any:
    """A method of lists or dicts that changes nothing where a tensor would be lost."""
    plain = getattr(kind, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        new = kind(self)
        result = plain(new, *args, **options)
        self._become(kept(_taken(kind(self), new, self.where), self.where))
        return self if result is new else result

    return method


class KeptList(list[Any], _Kept):
    """A list in a module: modules and tensors stay in their places."""

    def _become(self, new: Any) -> None:
        list.__setitem__(self, slice(None), new)

    __setitem__ = _checked(list, "__setitem__")
    __delitem__ = _checked(list, "__delitem__")
    __imul__ = _checked(list, "__imul__")
    clear = _checked(list, "clear")
    pop = _checked(list, "pop")
    remove = _checked(list, "remove")


class KeptDict(dict[Any, Any], _Kept):
    """A dict in a module: modules and tensors stay under their names."""

    def _become(self, new: Any) -> None:
        dict.clear(self)
        dict.update(self, new)

    __setitem__ = _checked(dict, "__setitem__")
    __delitem__ = _checked(dict, "__delitem__")
    __ior__ = _checked(dict, "__ior__")
    clear = _checked(dict, "clear")
    pop = _checked(dict, "pop")
    popitem = _checked(dict, "popitem")
    setdefault = _checked(dict, "setdefault")
    update = _checked(dict, "update")
