"""Modules and their weights, for inference alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from burnish.codegen.standalone.core.arrays import CPU
from burnish.codegen.standalone.core.tensor import Tensor, is_literal, literal
from burnish.codegen.standalone.core.weights import beside, refuse_changed, tensors
from burnish.errors import RecordError

TABLES = False  # set where the file is written


class Stored(Tensor):
    """A module's tensor: a shape and an initializer until it is used or loaded."""

    __slots__ = ("_dtype", "_initial", "_shape", "_value", "persistent")
    persistent: bool

    def __init__(
        self,
        initial: Any,
        shape: tuple[int, ...] | None = None,
        dtype: Any = "float32",
        *,
        persistent: bool = True,
    ):
        self.persistent = persistent
        self._initial: Any = None
        if callable(initial):
            self._initial, self._value = initial, None
            self._shape, self._dtype = tuple(shape or ()), np.dtype(dtype)
        else:
            if is_literal(initial):
                initial = np.asarray(*literal(initial))
            self.assign(np.asarray(getattr(initial, "data", initial)))

    def assign(self, value: Any) -> None:
        """Give it these values."""
        self._value = value
        self._shape, self._dtype = value.shape, value.dtype

    @property
    def data(self) -> Any:
        """The values; a lazy tensor makes them now."""
        if self._value is None:
            self.assign(
                CPU.put(self._initial(self._shape, self._dtype, CPU), self._dtype)
            )
        return self._value

    @property
    def held(self) -> Any:
        return self.data

    def settled(self) -> np.ndarray:
        """The values as NumPy has them."""
        return self.data

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    def load(self, path: str, value: Any) -> None:
        """Take a file's values, in its own dtype; RecordError where they misfit."""
        if value.shape != self._shape:
            raise RecordError(
                f"{path}: expected shape {self._shape}, got {value.shape}"
            )
        self.assign(value.astype(self._dtype, copy=False))


class Param(Stored):
    """A trained tensor."""

    __slots__ = ()


class Buffer(Stored):
    """A tensor that is not trained."""

    __slots__ = ()


class Module:
    """Base of every layer and model; `module(x)` calls `forward`."""

    device = CPU
    training = False

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.forward(*args, **options)  # type: ignore[attr-defined]

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Take values by path; RecordError for names and shapes that do not fit."""
        paths: dict[int, list[str]] = {}
        found: dict[int, Stored] = {}
        for path, item in tensors_in(vars(self)):
            paths.setdefault(id(item), []).append(path)
            found[id(item)] = item
        known = {path for names in paths.values() for path in names}
        kept = {name for name in state if not name.endswith("num_batches_tracked")}
        unexpected = sorted(kept - known)
        missing: list[str] = []
        for key, item in found.items():
            there = [path for path in paths[key] if path in state]
            if there:
                item.load(there[0], state[there[0]])
            elif item.persistent:
                missing.append(paths[key][0])
        if missing or unexpected:
            raise RecordError(
                f"weights do not fit {type(self).__name__}: missing {missing}, "
                f"unexpected {unexpected}"
            )
        return self

    @classmethod
    def from_bytes(cls, data: bytes, **config: Any) -> Self:
        """A module with weights from safetensors bytes."""
        state, metadata = tensors(data)
        model = cls(**config).load_state_dict(state)
        if TABLES:
            restore_tables(model, metadata)
        return model

    @classmethod
    def from_file(cls, path: Any = None, **config: Any) -> Self:
        """A module with weights from `path`, or from the file beside this one."""
        if path is not None:
            with open(path, "rb") as file:
                return cls.from_bytes(file.read(), **config)
        model = cls(**config)
        if not TABLES and not any(t.persistent for _, t in tensors_in(vars(model))):
            return model  # there is nothing to read
        return cls.from_bytes(beside(), **config)

    @classmethod
    def from_embedded(cls, **config: Any) -> Self:
        """A module with the weights that this file, or the one beside it, carries.

        Raises RecordError where they are not as they were generated.
        """
        model = cls(**config)
        if not TABLES and not any(t.persistent for _, t in tensors_in(vars(model))):
            return model
        if (text := globals().get("WEIGHTS")) is None:
            data = beside()
        else:
            import base64

            data = base64.b64decode(text)
        refuse_changed(data)
        return cls.from_bytes(data, **config)

    def fork(self, device: Any = None) -> Self:
        """A copy with tensors of its own."""
        made: Self = copied(self, {})
        return made

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module ("") and every one below it, each object once."""
        yield from modules_in("", self, set())

    def valid(self) -> Self:
        """The module itself: it computes, it does not train."""
        return self


Layer = Module


Holder = Module


def copied(value: Any, seen: dict[int, Any]) -> Any:
    """A deep copy of modules and tensors that preserves sharing.

    seen: the copy of each module and tensor, by its id.
    """
    if isinstance(value, dict):
        return {key: copied(item, seen) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([copied(item, seen) for item in value])
    if isinstance(value, Stored) and id(value) not in seen:
        start = value._initial if value._value is None else value._value.copy()
        seen[id(value)] = type(value)(
            start, value.shape, value.dtype, persistent=value.persistent
        )
    elif isinstance(value, Module) and id(value) not in seen:
        seen[id(value)] = made = object.__new__(type(value))
        vars(made).update(copied(vars(value), seen))
    return seen.get(id(value), value)


def modules_in(path: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Module]]:
    """Every module that a value is or holds, once, with its path."""
    if isinstance(value, Module):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield path, value
        value = vars(value)
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    for name, item in value.items() if isinstance(value, dict) else ():
        yield from modules_in(f"{path}.{name}" if path else str(name), item, seen)


def held(value: Any) -> Iterator[Any]:
    """Every module and tensor that a value is, or that a list or dict holds."""
    if isinstance(value, Module | Stored):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from held(item)


def tensors_in(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Stored]]:
    """Every tensor among attributes with its path, through modules, lists and dicts."""
    for name, value in attributes.items():
        if isinstance(value, Stored):
            yield name, value
        elif isinstance(value, Module):
            for path, item in tensors_in(vars(value)):
                yield f"{name}.{path}", item
        elif isinstance(value, list | tuple | dict):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for path, item in tensors_in({str(key): item for key, item in pairs}):
                yield f"{name}.{path}", item


def restore_tables(model: Module, metadata: Mapping[str, str]) -> None:
    """Give a model the constants that its weights file brings beside them."""
    import base64
    import zlib

    packed = base64.b64decode(metadata["burnish.tables"])
    arrays, _ = tensors(zlib.decompress(packed))
    for path, item in tensors_in(vars(model)):
        if path in arrays:
            item.load(path, arrays[path])


def checked(build: Callable[..., Any]) -> Callable[..., Any]:
    """A constructor as it is."""
    return build
