"""Module: a class whose attributes are parameters and other modules.

There is no registration and nothing to call in `__init__`: parameters, buffers and
submodules are found among the attributes, in lists, tuples and dicts too. Names are
attribute paths ("layers.0.fc1.weight"), as in PyTorch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeAlias

from burnish import serialize
from burnish.backend import Device
from burnish.nn import record
from burnish.nn.display import tree
from burnish.nn.param import Buffer, Param, Stored

Path: TypeAlias = str | os.PathLike[str]


class Module:
    """Base of every layer and model; `module(x)` calls `forward`."""

    device: Device = Device("cpu")

    def forward(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{type(self).__name__} has no forward method")

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.forward(*args, **options)

    @property
    def training(self) -> bool:
        """Whether dropout and batch statistics act: on an autodiff device they do."""
        return self.device.is_autodiff

    # --- what is inside ---

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct submodules with their paths ("conv1", "layers.0")."""
        for path, item in _items(vars(self)):
            if isinstance(item, Module):
                yield path, item

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module ("") and every one below it, each object once."""
        seen: set[int] = set()

        def walk(module: Module, path: str) -> Iterator[tuple[str, Module]]:
            if id(module) in seen:
                return
            seen.add(id(module))
            yield path, module
            for name, child in module.named_children():
                yield from walk(child, f"{path}.{name}" if path else name)

        yield from walk(self, "")

    def named_tensors(self) -> Iterator[tuple[str, Stored]]:
        """Parameters and buffers with their paths; a shared one has its first path."""
        seen: set[int] = set()
        for path, module in self.named_modules():
            for name, item in _items(vars(module)):
                if isinstance(item, Stored) and id(item) not in seen:
                    seen.add(id(item))
                    yield (f"{path}.{name}" if path else name), item

    def named_parameters(self) -> Iterator[tuple[str, Param]]:
        """The tensors that training changes, with their paths."""
        for path, item in self.named_tensors():
            if isinstance(item, Param):
                yield path, item

    def parameters(self) -> list[Param]:
        """The tensors that training changes."""
        return [param for _, param in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """The tensors that are saved but not trained, with their paths."""
        for path, item in self.named_tensors():
            if isinstance(item, Buffer):
                yield path, item

    @property
    def num_params(self) -> int:
        """The number of values in all parameters, frozen ones too."""
        return sum(param.size for param in self.parameters())

    def visit(self, visitor: Callable[[str, Stored], None]) -> None:
        """Call `visitor(path, tensor)` for every parameter and buffer."""
        for path, item in self.named_tensors():
            visitor(path, item)

    def map(self, mapper: Callable[[str, Stored], Any]) -> Self:
        """Give every parameter and buffer the value of `mapper(path, tensor)`."""
        for path, item in self.named_tensors():
            item.assign(mapper(path, item))
        return self

    # --- where it is ---

    def to(self, device: Device | str) -> Self:
        """Move every tensor to `device`, in place; on ":autodiff" it trains."""
        device = Device(device)
        for _, module in self.named_modules():
            module.device = device
        for _, item in self.named_tensors():
            item.place(device)
        return self

    def fork(self, device: Device | str) -> Self:
        """A copy on `device`; arrays are shared where the place is the same."""
        copied: Self = _copy(self, {})
        return copied.to(device)

    def valid(self) -> Self:
        """A copy for inference: same values, no recording, dropout off."""
        return self.fork(self.device.inner())

    def train(self) -> Self:
        """A copy for training: same values on the autodiff device."""
        return self.fork(self.device.autodiff())

    def freeze(self, frozen: bool = True) -> Self:
        """Keep every parameter out of training (or let it back in), in place."""
        for param in self.parameters():
            param.freeze(frozen)
        return self

    def no_grad(self) -> Self:
        """Freeze every parameter, in place: the Book's word for `freeze()`."""
        return self.freeze()

    # --- records ---

    def state_dict(self) -> dict[str, Any]:
        """Every parameter's and buffer's array by its path; nothing is copied."""
        return {path: item.data for path, item in self.named_tensors()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Self:
        """Take values by path; each is cast to the dtype the module has.

        strict: names must match exactly. Raises RecordError for names, shapes and
        dtypes that do not fit, all of them at once, before anything is changed.
        """
        kind = type(self).__name__
        for item, array in record.fitted(kind, _every_path(self), state, strict):
            item.assign(array)
        return self

    def save_file(
        self,
        path: Path,
        dtype: Any = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        """Write every parameter and buffer to a safetensors file, atomically.

        dtype: "float16" or "float64", for the floating-point ones; None keeps theirs.
        """
        serialize.save_file(record.cast(self.state_dict(), dtype), path, metadata)

    def load_file(self, path: Path, strict: bool = True) -> Self:
        """Take the values of a safetensors file, by memory map."""
        return self.load_state_dict(serialize.load_file(path), strict)

    def to_bytes(self, dtype: Any = None) -> bytes:
        """The module's values as safetensors bytes."""
        return serialize.to_bytes(record.cast(self.state_dict(), dtype))

    @classmethod
    def from_file(cls, path: Path | None = None, **config: Any) -> Self:
        """A module with weights from `path`, or from the file beside its source."""
        if path is None:
            model = cls(**config)
            if next(model.named_tensors(), None) is None:
                return model  # there is nothing to read
            path = record.beside(cls)
            if not isinstance(path, os.PathLike):
                return cls.from_bytes(path.read_bytes(), **config)
        return cls(**config).load_file(path)

    @classmethod
    def from_bytes(cls, data: bytes, **config: Any) -> Self:
        """A module with weights from safetensors bytes."""
        return cls(**config).load_state_dict(serialize.from_bytes(data))

    @classmethod
    def from_embedded(cls, **config: Any) -> Self:
        """A module with the weights that its source or its package carries.

        In the source they are `WEIGHTS`, safetensors bytes in base64.
        """
        text = getattr(sys.modules[cls.__module__], "WEIGHTS", None)
        if text is None:
            return cls.from_file(**config)
        import base64

        return cls.from_bytes(base64.b64decode(text), **config)

    # --- display ---

    def extra_repr(self) -> str:
        """What `repr` says of this module beside its children: sizes, options."""
        return ""

    def __repr__(self) -> str:
        return tree(self)


def _items(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every module and stored tensor among attributes, through lists and dicts."""
    for name, value in attributes.items():
        if isinstance(value, Module | Stored):
            yield name, value
        elif isinstance(value, list | tuple):
            for path, item in _items({str(i): v for i, v in enumerate(value)}):
                yield f"{name}.{path}", item
        elif isinstance(value, dict):
            for path, item in _items({str(k): v for k, v in value.items()}):
                yield f"{name}.{path}", item


def _every_path(module: Module) -> Iterator[tuple[str, Stored]]:
    """Every path of every tensor: a shared one comes once for each."""

    def walk(module: Module, prefix: str, above: tuple[Module, ...]) -> Any:
        for name, item in _items(vars(module)):
            if isinstance(item, Stored):
                yield prefix + name, item
            elif not any(item is module for module in above):
                yield from walk(item, f"{prefix}{name}.", (*above, item))

    yield from walk(module, "", (module,))


def _copy(value: Any, done: dict[int, Any]) -> Any:
    """A deep copy of modules, tensors and containers; other values are shared."""
    if id(value) in done:
        return done[id(value)]
    made: Any
    if isinstance(value, Stored):
        made = value.copy()
    elif isinstance(value, Module):
        made = done[id(value)] = object.__new__(type(value))
        made.__dict__.update({k: _copy(v, done) for k, v in vars(value).items()})
    elif isinstance(value, list):
        made = [_copy(item, done) for item in value]
    elif isinstance(value, tuple):
        items = [_copy(item, done) for item in value]
        made = value._make(items) if hasattr(value, "_make") else tuple(items)
    elif isinstance(value, dict):
        made = {key: _copy(item, done) for key, item in value.items()}
    else:
        return value
    done[id(value)] = made
    return made
