"""Guards: check that globals and attributes read during capture are unchanged.

A program reads parameters and buffers as they are. Everything else was read once: which
modules and parameters there are, their settings and devices, tensors from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from burnish.autodiff import recording
from burnish.capture.containers import LONGEST, SETTINGS, Containers, is_other
from burnish.capture.signature import argument_names
from burnish.capture.tape import Tape
from burnish.errors import CaptureError
from burnish.kernels.same import Same
from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored

_STORED = ("device", "_dtype", "trainable")


def named(modules: dict[str, Module]) -> dict[int, str]:
    """The path of every parameter and buffer, by its `id`."""
    return {
        id(item): f"{name}.{path}" if name else path
        for name, module in modules.items()
        for path, item in module.named_tensors()
    }


class Watch:
    """Remembers how everything was; `check` tells what differs."""

    def __init__(self, tape: Tape, modules: dict[str, Module]):
        self.modules = modules
        self._paths = named(modules)
        self._stored = [
            (item, item.device, item.dtype, item.trainable)
            for item in tape.stored.values()
        ]
        self._devices: list[tuple[Module, Any, str]] = []
        self._counts: list[tuple[Any, int, str]] = []
        self._inside: set[int] = set()  # the ids of the containers in `_counts`
        self._names: list[tuple[dict[str, Any], int, str]] = []
        self._parts: list[tuple[Any, Any, Any, str]] = []
        self._settings: list[tuple[Any, Any, Any, str]] = []
        for where, module in _everyone(modules):
            self._devices.append((module, module.device, where))
            self._keep(vars(module), where)
            self._settings.extend(_settings(vars(module), vars(module), where))
        self._classes = _inherited(dict(_classes(modules)))
        for kind, own in self._classes:
            for value in own.values():
                if isinstance(value, list | tuple | dict):
                    self._keep_inside(value, _class(kind))
        self._formulas = [*tape.formulas.values()]
        self._freeze()
        seen = tape.seen.values()
        self._outside = [(ref, array) for ref, array in seen if ref() is not None]

    def _freeze(self) -> None:
        """Take everything as it is now, to be compared by identity in every run."""
        holders = [own for own, _, _ in self._names] + [h for h, _, _ in self._counts]
        items = [item for item, *_ in self._stored]
        looks = [Same(holders, items, _STORED)]
        looks += [Same([], [kind], [*own]) for kind, own in self._classes if own]
        self._looks = tuple(looks)

    def _keep(self, own: dict[str, Any], where: str) -> None:
        """Attributes that are no settings, and how many there are of all."""
        self._names.append((own, _count(own), where))
        for name, value in own.items():
            if not isinstance(value, SETTINGS):
                self._parts.append((own, name, value, where))
            if isinstance(value, list | tuple | dict):
                self._keep_inside(value, where)

    def _keep_inside(self, holder: Any, where: str) -> None:
        """The items of a container, of a long one modules alone, and its length."""
        if id(holder) in self._inside:
            return  # it is in itself, or in two places
        self._inside.add(id(holder))
        self._counts.append((holder, len(holder), where))
        items = dict(holder.items() if isinstance(holder, dict) else enumerate(holder))
        is_short = len(items) <= LONGEST
        if is_short:
            self._settings.extend(_settings(items, holder, where))
        for key, item in items.items():
            if isinstance(item, list | tuple | dict):
                self._keep_inside(item, where)
            elif isinstance(item, Stored | Module) or (
                is_short and not isinstance(item, SETTINGS)
            ):
                self._parts.append((holder, key, item, where))

    def path(self, stored: Stored) -> str:
        """The name of a parameter or buffer."""
        return self._paths.get(id(stored), f"a {type(stored).__name__}")

    def check(self) -> None:
        """Raises CaptureError for the first thing that has changed."""
        tape, recording.tape = recording.tape, None
        try:
            if not all(is_same() for is_same in self._looks):
                self._check_modules()
                self._check_classes()
                self._check_stored()
                self._freeze()  # settings of the same values may be other objects
            self._check_outside()
            self._check_formulas()
        except (KeyError, IndexError) as error:
            _changed("a module", f"it has no {error.args[0]!r}")
        finally:
            recording.tape = tape

    @property
    def looks(self) -> tuple[Same, ...] | None:
        """The comparisons of modules, where nothing else is looked at; else None."""
        return None if self._outside or self._formulas else self._looks

    def _check_modules(self) -> None:
        for module, device, where in self._devices:
            if module.device is not device:
                _changed(where, f"was on '{device}' and is on '{module.device}'")
        for holder, count, where in self._counts:
            if len(holder) != count:
                _changed(where, f"of {count} parts in a row there are {len(holder)}")
        for holder, key, part, where in self._parts:
            if holder[key] is not part:
                _changed(where, f"its {key!r} is another one")
        for own, count, where in self._names:
            if _count(own) != count:
                _changed(where, "it has other attributes")
        for own, read, values, where in self._settings:
            if read(own) != values:
                _changed(where, "a setting is another one")

    def _check_classes(self) -> None:
        for kind, own in self._classes:
            for name, before in own.items():
                if not hasattr(kind, name):
                    _changed(_class(kind), f"it has no {name!r}")
                now = getattr(kind, name)
                are_settings = isinstance(now, SETTINGS) and isinstance(
                    before, SETTINGS
                )
                if now is not before and not (are_settings and now == before):
                    _changed(_class(kind), f"its {name!r} is another one")

    def _check_stored(self) -> None:
        for item, device, dtype, trainable in self._stored:
            if item.device is not device:
                how = f"was on '{device}' and is on '{item.device}'"
                _changed(self.path(item), how)
            if item.dtype != dtype:
                _changed(self.path(item), f"was {dtype} and is {item.dtype}")
            if item.trainable is not trainable:
                _changed(self.path(item), "it was frozen or let go")

    def _check_formulas(self) -> None:
        for item, was_merged in self._formulas:
            if item.is_merged is not was_merged:
                _changed("a parameter made of others", "it was merged or unmerged")

    def _check_outside(self) -> None:
        for ref, array in self._outside:
            tensor = ref()
            if tensor is not None and tensor.data is not array:
                _changed("a tensor from outside", "its values are others")


def held(function: Any, args: Any, options: Any) -> Containers:
    """The containers among a function's arguments, by the names of these."""
    containers, names = Containers(), argument_names(function)
    names += [f"argument {i}" for i in range(len(names), len(args))]
    for name, item in [*zip(names, args, strict=False), *options.items()]:
        containers.keep(item, repr(name))
    return containers


def called(function: Any, args: Any, options: Any) -> Any:
    """The function's results, for containers of arguments that are a capture's own.

    Raises CaptureError where it changes these: the caller's would stay as they are.
    """
    containers = held(function, args, options)
    made = function(*args, **options)
    check_items(containers)
    return made


def check_items(containers: Containers) -> None:
    """Raises CaptureError for items that no run of a program would change."""
    for name in containers.changed():
        _left(f"changes the items of {name}")


class Before:
    """Modules' attributes and containers before a capture, to find what it changes.

    others: containers that the function reaches besides those of modules, with names.
    """

    def __init__(
        self, modules: dict[str, Module], others: Iterable[tuple[str, Any]] = ()
    ):
        self._kept: list[tuple[Any, str, dict[str, Any]]] = [
            (module, where, dict(vars(module))) for where, module in _everyone(modules)
        ]
        self._kept += [(kind, _class(kind), own) for kind, own in _classes(modules)]
        self._containers = Containers()
        for _, where, own in self._kept:
            for name, value in own.items():
                self._containers.keep(value, f"{name!r} of {where}")
        for name, value in others:
            self._containers.keep(value, repr(name))

    def check(self) -> None:
        """Raises CaptureError for what no run of the program would leave there."""
        for _, where, name, value, _ in self._changed():
            is_setting = isinstance(value, SETTINGS)
            what = f"{name!r}, {value!r}" if is_setting else f"the tensor {name!r}"
            _left(f"keeps {what} in {where}")
        check_items(self._containers)

    def restore(self) -> None:
        """Undo these changes: the plain call, which follows, makes them again."""
        for holder, _, name, _, before in [*self._changed()]:
            if isinstance(holder, type):
                if name in before:
                    setattr(holder, name, before[name])
                else:
                    delattr(holder, name)
            elif name in before:
                vars(holder)[name] = before[name]
            else:
                del vars(holder)[name]
        self._containers.restore()

    def _changed(self) -> Iterator[tuple[Any, str, str, Any, Any]]:
        """The settings that are others, and the capture's tensors that are kept."""
        for holder, where, before in self._kept:
            own = _own(holder) if isinstance(holder, type) else vars(holder)
            for name, value in [*own.items()]:
                if is_other(value, before.get(name)):
                    yield holder, where, name, value, before


def _everyone(modules: dict[str, Module]) -> Iterator[tuple[str, Module]]:
    """Every module once, with its class and path."""
    seen: set[int] = set()
    for name, module in modules.items():
        for path, each in module.named_modules():
            if id(each) in seen:
                continue
            seen.add(id(each))
            whole = ".".join(filter(None, (name, path)))
            yield f"{type(each).__name__} {whole}".rstrip(), each


def _classes(modules: dict[str, Module]) -> Iterator[tuple[type, dict[str, Any]]]:
    """The classes of modules, Burnish's own left out, and what these hold."""
    kinds = {
        kind: None for _, each in _everyone(modules) for kind in type(each).__mro__
    }
    for kind in kinds:
        if kind is object or kind.__module__.partition(".")[0] == _LIBRARY:
            continue
        yield kind, _own(kind)


def _own(kind: type) -> dict[str, Any]:
    """What a class holds but methods, properties and classes: nobody changes those."""
    return {
        name: value
        for name, value in vars(kind).items()
        if not (name.startswith("__") or isinstance(value, type))
        and not hasattr(type(value), "__get__")
    }


def _inherited(
    classes: dict[type, dict[str, Any]],
) -> list[tuple[type, dict[str, Any]]]:
    """Classes with what they hold and inherit, which an own attribute would hide."""
    return [
        (
            kind,
            {
                name: value
                for base in reversed(kind.__mro__)
                for name, value in classes.get(base, {}).items()
                if getattr(kind, name) is value
            },
        )
        for kind in classes
    ]


_LIBRARY = __name__.partition(".")[0]


def _class(kind: type) -> str:
    return f"the class {kind.__name__}"


def _settings(
    items: dict[Any, Any], own: Any, where: str
) -> Iterator[tuple[Any, Any, Any, str]]:
    """Numbers and words among the items of `own`: it, how to read them, values."""
    keys = [key for key, value in items.items() if isinstance(value, SETTINGS)]
    if keys:
        read = itemgetter(*keys)
        yield own, read, read(own), where


def _count(own: dict[str, Any]) -> int:
    """The number of a module's own attributes; its device may be its class's."""
    return len(own) - ("device" in own)


def _changed(where: str, how: str) -> None:
    raise CaptureError(
        f"program: since its capture {where} has changed: {how}; capture again"
    )


def _left(how: str) -> None:
    raise CaptureError(
        f"capture: the function {how}, which a program does not; "
        f"let it return what it has to tell"
    )
