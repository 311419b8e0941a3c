"""Find the modules that a function uses, through closures, globals and attributes."""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from operator import call, is_
from types import (
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.capture.containers import LONGEST, SETTINGS
from burnish.nn.core.module import Module


def reached(function: Any) -> dict[str, Module]:
    """Every module that a function reaches, with its name there: see `Reach`."""
    return Reach(function).modules


class Reach:
    """The modules that a function reaches, and whether its names still mean them.

    containers: the lists, dicts and sets that it reaches besides theirs, with names,
    which closures of several functions may share.

    Itself (""), those of the object it belongs to, and those among its arguments, their
    defaults, its globals and what it closes over, in lists, tuples and dicts too;
    functions of its file that it uses, and those that it closes over, reach theirs.
    """

    def __init__(self, function: Any):
        self._seen: set[int] = set()
        self._held: list[tuple[Any, Any, Any]] = []  # (holder, key, what it held)
        self._sizes: list[tuple[Any, int]] = []
        self.containers: list[tuple[str, Any]] = []
        self.modules = self._reached(function)

    def is_same(self) -> bool:
        """Whether every name still means the same, and containers are as long."""
        for holder, key, item in self._held:
            if type(holder) is CellType:
                if _content(holder) is not item:
                    return False
                continue
            try:
                if holder[key] is not item:
                    return False
            except LookupError:
                return False
        sizes = self._sizes  # mostly none: a generator would take longer than the rest
        return not sizes or all(len(holder) == size for holder, size in sizes)

    def _reached(self, function: Any) -> dict[str, Module]:
        if id(function) in self._seen:
            return {}
        self._seen.add(id(function))
        if isinstance(function, Module):
            return {"": function}
        if hasattr(function, "watched"):  # a program
            return dict(function.watched)
        if isinstance(function, partial):
            places = {f"argument {i}": i for i in range(len(function.args))}
            found = self._reached(function.func)
            found |= self._modules(function.args, places)
            return found | self._modules(function.keywords)
        if isinstance(function, MethodType):
            found = self._reached(function.__func__)
            if isinstance(owner := function.__self__, Module):
                found["self"] = owner
            return found | self._of_attributes(owner)
        if not isinstance(function, FunctionType):
            return self._of_attributes(function)
        code, file = function.__code__, function.__globals__
        own = [n for n in code.co_names if n in file and not _is_of_another(file, n)]
        found = self._modules(file, {name: name for name in own})
        defaults = function.__defaults__ or ()
        last = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        found |= self._modules(defaults, {name: i for i, name in enumerate(last)})
        found |= self._modules(function.__kwdefaults__ or {})
        for name, cell in zip(
            code.co_freevars, function.__closure__ or (), strict=True
        ):
            found |= self._of_item(name, cell, None, _content(cell))
        return found

    def _of_attributes(self, owner: Any) -> dict[str, Module]:
        own = getattr(owner, "__dict__", {})
        return self._modules(own, {f"self.{name}": name for name in own})

    def _modules(
        self, holder: Any, names: dict[str, Any] | None = None
    ) -> dict[str, Module]:
        """The modules of a container, by a key for each name."""
        names = {name: name for name in holder} if names is None else names
        found: dict[str, Module] = {}
        for name, key in names.items():
            try:
                item = holder[key]
            except KeyError:  # of a table whose entries leave as arrays are freed
                continue
            found |= self._of_item(name, holder, key, item)
        return found

    def _of_item(
        self, name: str, holder: Any, key: Any, item: Any
    ) -> dict[str, Module]:
        """The modules of what a holder has: it, or those that it holds or reaches."""
        found: dict[str, Module] = {}
        if isinstance(item, Module):
            found[name] = item
        elif isinstance(item, ModuleType):  # a lazy one is slow to say what it lacks
            return {}
        elif isinstance(item, set | deque):
            self.containers.append((name, item))
        elif isinstance(item, list | tuple | dict):
            self.containers.append((name, item))
            if len(item) <= LONGEST and id(item) not in self._seen:
                self._seen.add(id(item))
                found = self._modules(item, _named(name, item))
                if found:
                    self._sizes.append((item, len(item)))
        elif isinstance(item, FunctionType | MethodType | partial) or (
            hasattr(item, "watched") and not isinstance(item, type)
        ):
            inside = self._reached(item)
            found = {f"{name}.{path}".rstrip("."): m for path, m in inside.items()}
        if found:
            self._held.append((holder, key, item))
        return found


def _named(name: str, holder: Any) -> dict[str, Any]:
    """The keys of a container by names such as "models[0]"."""
    keys = [*holder] if isinstance(holder, dict) else range(len(holder))
    return {f"{name}[{key!r}]": key for key in keys}


def _is_of_another(file: dict[str, Any], name: str) -> bool:
    """Whether a name is a function that another file defines: a library's."""
    item = file[name]
    return isinstance(item, FunctionType) and item.__globals__ is not file


def _content(cell: Any) -> Any:
    """The value in a closure cell; None for a name that is assigned later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _look_into(cell: CellType) -> Callable[[], Any]:
    """What reads a closure cell; raises ValueError once one that had a value is empty.

    Before each call all of them are read: a function of Python takes thrice as long.
    """
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return partial(_content, cell)
    return partial(CellType.cell_contents.__get__, cell)


def _now(look: Callable[[], Any]) -> Any:
    try:
        return look()
    except ValueError:
        return _MISSING


class Reads:
    """What functions read besides arguments and modules, and whether it is the same.

    Globals and variables that they close over, and what these hold: attributes of
    classes and of plain objects, as far as code names them, and items of containers. It
    is read off the code of the function, of the classes of modules and of what they
    call; code of libraries is not looked at.
    """

    def __init__(self, function: Any, modules: dict[str, Module]):
        self._seen: dict[int, Any] = {}
        self._names = {"forward", *_IMPLICIT}
        self._asked: set[str] = set()
        self._globals: dict[int, tuple[dict[str, Any], set[str]]] = {}
        self._owners: list[list[Any]] = []  # dicts of an object and of its classes
        self._dicts: dict[type, Any] = {}
        self._cells: list[CellType] = []
        self._boxes: list[tuple[Any, list[Any]]] = []
        self._modules_own: set[int] = set()  # lists that modules' guards compare
        self._walk([function, *modules.values()])
        taken = [*self._taken()]
        self._looks = [look for look, _ in taken]
        self._puts = [put for _, put in taken]
        self._before = [*map(call, self._looks)]
        self._seen.clear()  # what it holds may go

    def are_same(self) -> bool:
        """Whether a call would read the same now."""
        try:
            now = [*map(call, self._looks)]
        except ValueError:  # a variable that had a value has none
            return False
        if not all(map(is_, now, self._before)):
            if not _are_alike(now, self._before):
                return False
            self._before = now
        boxes = self._boxes  # mostly none, as in `Reach`
        return not boxes or all(_has_same_items(box, held) for box, held in boxes)

    def restore(self) -> None:
        """Undo what a capture has changed: the plain call, which follows, does it."""
        looked = zip(self._looks, self._puts, self._before, strict=True)
        for look, put, before in looked:
            if _now(look) is not before:
                put(before)
        for box, held in self._boxes:
            if not _has_same_items(box, held):
                _refill(box, held)

    def _walk(self, items: list[Any]) -> None:
        """Look at items, and at what these read, until nothing new is named."""
        todo, count = deque(items), (-1, -1)
        while todo and len(self._seen) < _MOST_READ:
            while todo and len(self._seen) < _MOST_READ:
                item = todo.popleft()
                if id(item) not in self._seen:
                    self._seen[id(item)] = item
                    todo.extend(self._parts(item))
            known = len(self._names), len(self._owners)
            if known == count:
                break
            count = known
            for holders in self._owners:
                for holder in holders:
                    named = holder.keys() & self._names
                    todo.extend(holder[name] for name in named)

    def _parts(self, item: Any) -> Iterator[Any]:
        """What is reached from an item at once."""
        if isinstance(item, FunctionType):
            yield from self._of_function(item)
        elif isinstance(item, MethodType):
            yield from (item.__func__, item.__self__)
        elif isinstance(item, partial):
            yield from (item.func, *item.args, *item.keywords.values())
        elif isinstance(item, staticmethod | classmethod):
            yield item.__func__
        elif isinstance(item, property):
            yield item.fget
        elif isinstance(item, cached_property):
            yield item.func
        elif isinstance(item, Module):
            for _, each in item.named_modules():
                yield type(each)
                yield from self._of_module(each)
        elif isinstance(item, list | tuple | dict | set | deque):
            yield from self._of_container(item)
        elif isinstance(item, type):
            self._owners.append(self._class_dicts(item))
            for kind in _own_classes(item):
                for name, value in vars(kind).items():
                    if name in self._names:
                        yield value
        elif isinstance(item, ModuleType):
            if not _is_library(item.__name__):
                self._owners.append([vars(item)])
        elif "__wrapped__" in getattr(item, "__dict__", ()):
            yield item.__wrapped__
        elif _is_plain(item):
            own = getattr(item, "__dict__", None)
            own = _Slots(item) if own is None else own
            self._owners.append([own, *self._class_dicts(type(item))])
            yield type(item)

    def _class_dicts(self, kind: type) -> list[Any]:
        """What a class and its bases hold; the same objects for each."""
        kinds = _own_classes(kind)
        return [self._dicts.setdefault(each, vars(each)) for each in kinds]

    def _of_function(self, item: FunctionType) -> Iterator[Any]:
        for cell in item.__closure__ or ():
            self._cells.append(cell)
            yield _content(cell)
        file = item.__globals__
        if _is_library(item.__module__ or file.get("__name__", "")):
            return
        names = _globals_of(item.__code__, self._names, self._asked)
        names = {each for each in names if each in file or not hasattr(builtins, each)}
        self._globals.setdefault(id(file), (file, set()))[1].update(names)
        yield from (file.get(name) for name in names)
        yield from item.__defaults__ or ()
        yield from (item.__kwdefaults__ or {}).values()

    def _of_module(self, module: Module) -> Iterator[Any]:
        """A module's attributes, the guards of which are others."""
        for value in vars(module).values():
            if isinstance(value, list | tuple):
                self._modules_own.add(id(value))
            if not isinstance(value, Module | Variable | type):
                yield value

    def _of_container(self, item: Any) -> Iterator[Any]:
        is_own = id(item) in self._modules_own
        if not is_own and not isinstance(item, tuple):
            self._boxes.append((item, _items(item)))
        if len(item) > LONGEST:
            return
        for each in item.values() if isinstance(item, dict) else item:
            if is_own and isinstance(each, list | tuple):
                self._modules_own.add(id(each))
            if not isinstance(each, SETTINGS):
                yield each

    def _taken(self) -> Iterator[tuple[Callable[[], Any], Callable[[Any], None]]]:
        """Functions that read and write what is compared: a name of a holder each."""
        for cell in self._cells:
            yield _look_into(cell), partial(setattr, cell, "cell_contents")
        for file, names in self._globals.values():
            for name in names:
                yield partial(file.get, name, _MISSING), partial(_put, file, name)
        done: set[tuple[int, str]] = set()
        for holders in self._owners:
            known = set[str]().union(*[holder.keys() for holder in holders])
            for holder in holders:
                for name in known & self._names | self._asked:
                    if (id(holder), name) not in done:
                        done.add((id(holder), name))
                        look = partial(holder.get, name, _MISSING)
                        yield look, partial(_put, holder, name)


class _Slots:
    """The attributes of an object without a dict, read as from one."""

    def __init__(self, owner: Any):
        self._owner = owner
        self._names = {name for kind in type(owner).__mro__ for name in _slots_of(kind)}

    def keys(self) -> set[str]:
        return {name for name in self._names if hasattr(self._owner, name)}

    def get(self, name: str, default: Any) -> Any:
        return getattr(self._owner, name, default) if name in self._names else default

    def __getitem__(self, name: str) -> Any:
        return getattr(self._owner, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._owner, name, value)

    def pop(self, name: str, _default: Any) -> None:
        delattr(self._owner, name)


def _put(holder: Any, name: str, value: Any) -> None:
    """Give a name its value of before; those of classes stay as they are."""
    if isinstance(holder, MappingProxyType):
        return
    if value is _MISSING:
        holder.pop(name, None)
    else:
        holder[name] = value


def _refill(box: Any, held: list[Any]) -> None:
    """Give a container its items of before, as `_items` has them; no long one."""
    if isinstance(box, dict) and len(held) % 2 == 0:
        half = len(held) // 2
        box.clear()
        box.update(zip(held[:half], held[half:], strict=True))
    elif isinstance(box, list | deque | set) and [*map(type, held)] != [int]:
        box.clear()  # (one number may be a length)
        (box.update if isinstance(box, set) else box.extend)(held)


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _globals_of(code: CodeType, names: set[str], asked: set[str]) -> set[str]:
    """The globals that code reads. Adds attributes that it reads to `names`, and words
    to `asked` where it asks for attributes by these."""
    import dis

    found: set[str] = set()
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.add(each.argval)
        elif each.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            names.add(each.argval)
    words = {each for each in code.co_consts if isinstance(each, str)}
    if not found.isdisjoint(("getattr", "hasattr")):
        asked.update(filter(str.isidentifier, words))
        names.update(filter(str.isidentifier, words))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _globals_of(inner, names, asked)
    return found


def _own_classes(kind: type) -> list[type]:
    """A class and those that it inherits from, without those of libraries."""
    return [each for each in kind.__mro__ if not _is_library(each.__module__)]


def _is_plain(item: Any) -> bool:
    """Whether attributes of an object are a user's: a class of his, or a namespace."""
    if type(item) is SimpleNamespace or type(item).__module__ == "argparse":
        return True
    names = [kind.__module__ for kind in type(item).__mro__]
    own = [name for name in names if _top(name) == _LIBRARY]
    if not all(name.startswith(_CONFIGS) for name in own):
        return False
    return not _is_library(names[0])


@cache
def _is_library(module: str) -> bool:
    """Whether a module is Burnish's, Python's or an installed one's."""
    top = _top(module)
    if top == _LIBRARY or top in sys.stdlib_module_names or top == "builtins":
        return True
    place = getattr(sys.modules.get(top), "__file__", None) or ""
    return "site-packages" in place or "dist-packages" in place


def _top(module: str) -> str:
    return str(module).partition(".")[0]


def _items(box: Any) -> list[Any]:
    """A container's items, of a dict its keys, then its values; of long ones none."""
    if len(box) > LONGEST:
        return [len(box)]
    return [*box, *box.values()] if isinstance(box, dict) else [*box]


def _has_same_items(box: Any, before: list[Any]) -> bool:
    """Whether a container has the same items; a dict that gains arrays is a cache."""
    if not before and not box:
        return True
    now = box if type(box) is list and len(box) <= LONGEST else _items(box)
    if len(now) == len(before) and all(map(is_, now, before)):
        return True
    if len(box) > LONGEST or isinstance(box, set):
        return len(now) == len(before) and {*now} == {*before}
    if not isinstance(box, dict):
        return len(now) == len(before) and _are_alike(now, before)
    count = len(before) // 2
    keys, values = before[:count], before[count:]
    if any(isinstance(box[key], SETTINGS) for key in box.keys() - {*keys}):
        return False
    return _are_alike([box.get(key, _MISSING) for key in keys], values)


def _are_alike(now: Any, before: Any) -> bool:
    """Whether objects are the same, numbers and words equal ones of one type."""
    return all(
        a is b
        or (
            type(a) is type(b)
            and (
                (isinstance(a, _EQUAL) and a == b)
                or (type(a) is tuple and len(a) == len(b) and _are_alike(a, b))
            )
        )
        for a, b in zip(now, before, strict=True)
    )


_EQUAL = (*SETTINGS, np.generic)
_MISSING = object()
_LIBRARY = _top(__name__)
_CONFIGS = "burnish.config"

_MOST_READ = 1 << 12
"""Objects that are looked at, so that walks through large structures end."""

_IMPLICIT = {
    *("__call__", "__getattr__", "__getitem__", "__len__", "__iter__", "__next__"),
    *("__contains__", "__enter__", "__exit__", "__bool__", "__eq__", "__get__"),
    *("__add__", "__radd__", "__mul__", "__rmul__", "__sub__", "__truediv__"),
}
"""Methods that run although no code names them."""
