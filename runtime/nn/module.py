"""Module: a class whose attributes are parameters and other modules.

There is no registration and nothing to call in `__init__`: parameters, buffers and
submodules are found among the attributes, in lists, tuples and dicts too. Names are
attribute paths ("layers.0.fc1.weight"), as in PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Self

from burnish import serialize
from burnish.backend import Device
from burnish.errors import RecordError
from burnish.nn.param import Buffer, Param, Stored


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

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module ("") and every one below it, each object once."""
        seen: set[int] = set()

        def walk(module: Module, path: str) -> Iterator[tuple[str, Module]]:
            if id(module) in seen:
                return
            seen.add(id(module))
            yield path, module
            for name, child in module.named_children():
                yield from walk(child, f"{path}.{name}" if path else name)

        yield from walk(self, prefix)

    def named_tensors(self) -> Iterator[tuple[str, Stored]]:
        """Parameters and buffers with their paths; a shared one under its first path."""
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
        return [param for _, param in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """The tensors that are saved but not trained, with their paths."""
        for path, item in self.named_tensors():
            if isinstance(item, Buffer):
                yield path, item

    @property
    def num_params(self) -> int:
        """The number of trainable values."""
        return sum(param.size for param in self.parameters())

    def visit(self, visitor: Callable[[str, Stored], None]) -> None:
        """Call `visitor(path, tensor)` for every parameter and buffer."""
        for path, item in self.named_tensors():
            visitor(path, item)

    def map(self, mapper: Callable[[str, Stored], Any]) -> Self:
        """Give every parameter and buffer the value `mapper(path, tensor)`."""
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
        return _copy(self, {}).to(device)

    def valid(self) -> Self:
        """A copy for inference: same values, no recording, dropout off."""
        return self.fork(self.device.inner())

    def train(self) -> Self:
        """A copy for training: same values on the autodiff device."""
        return self.fork(self.device.autodiff())

    def no_grad(self) -> Self:
        """Freeze every parameter, in place."""
        for param in self.parameters():
            param.freeze()
        return self

    # --- records ---

    def state_dict(self) -> dict[str, Any]:
        """Every parameter's and buffer's array by its path; nothing is copied."""
        return {path: item.data for path, item in self.named_tensors()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Self:
        """Take values by path; each is cast to the dtype the module has.

        strict: names must match exactly. Raises RecordError for names and shapes that
        do not fit, all of them at once, before anything is changed.
        """
        own = dict(self.named_tensors())
        aliases = self._aliases()
        problems = []
        missing = [name for name in own if name not in state]
        unexpected = [n for n in state if n not in own and n not in aliases]
        if strict and (missing or unexpected):
            problems.append(f"missing {missing}, unexpected {unexpected}")
        problems += [
            f"{name} has shape {own[name].shape}, got {tuple(state[name].shape)}"
            for name in own
            if name in state and tuple(state[name].shape) != own[name].shape
        ]
        if problems:
            kind = type(self).__name__
            raise RecordError(f"weights do not fit {kind}: " + "; ".join(problems))
        for name, item in own.items():
            if name in state:
                value = state[name]
                item.assign(value, item.dtype)
        return self

    def _aliases(self) -> set[str]:
        """Every path of a tensor, those of shared ones too."""
        paths = set()

        def walk(module: Module, prefix: str) -> None:
            for name, item in _items(vars(module)):
                if isinstance(item, Stored):
                    paths.add(prefix + name)
                elif isinstance(item, Module):
                    walk(item, f"{prefix}{name}.")

        walk(self, "")
        return paths

    def save_file(self, path: str | Path) -> None:
        """Write every parameter and buffer to a safetensors file, atomically."""
        serialize.save_file(self.state_dict(), path)

    def load_file(self, path: str | Path, strict: bool = True) -> Self:
        """Take the values of a safetensors file, by memory map."""
        return self.load_state_dict(serialize.load_file(path), strict)

    def to_bytes(self) -> bytes:
        """The module's values as safetensors bytes."""
        return serialize.to_bytes(self.state_dict())

    @classmethod
    def from_file(cls, path: str | Path | None = None, **config: Any) -> Self:
        """A module with weights from `path`, or from the file beside its source."""
        return cls(**config).load_file(path or _beside(cls))

    @classmethod
    def from_bytes(cls, data: bytes, **config: Any) -> Self:
        """A module with weights from safetensors bytes."""
        return cls(**config).load_state_dict(serialize.from_bytes(data))

    @classmethod
    def from_embedded(cls, **config: Any) -> Self:
        """A module with the weights that its package or its source carries."""
        source = sys.modules[cls.__module__]
        if text := getattr(source, "WEIGHTS", None):
            import base64

            return cls.from_bytes(base64.b64decode(text), **config)
        folder, _, stem = cls.__module__.rpartition(".")
        if not folder:
            return cls.from_file(**config)
        entry = resources.files(folder).joinpath(f"{stem}.safetensors")
        return cls.from_bytes(entry.read_bytes(), **config)

    # --- display ---

    def extra_repr(self) -> str:
        """What `repr` says of this module beside its children: sizes, options."""
        return ""

    def __repr__(self) -> str:
        return _tree(self)


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


def _copy(value: Any, done: dict[int, Any]) -> Any:
    """A deep copy of modules, tensors and containers; other values are shared."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Stored):
        made: Any = value.copy()
    elif isinstance(value, Module):
        made = object.__new__(type(value))
        done[id(value)] = made
        for name, item in vars(value).items():
            made.__dict__[name] = _copy(item, done)
    elif isinstance(value, list | tuple):
        made = type(value)(_copy(item, done) for item in value)
    elif isinstance(value, dict):
        made = {key: _copy(item, done) for key, item in value.items()}
    else:
        return value
    done[id(value)] = made
    return made


def _beside(cls: type) -> Path:
    source = getattr(sys.modules[cls.__module__], "__file__", None)
    if source is None:
        raise RecordError(
            f"{cls.__name__}.from_file: the class was not imported from a file; "
            f"give the path of its weights"
        )
    return Path(source).with_suffix(".safetensors")


def _tree(module: Module) -> str:
    head = f"{type(module).__name__}({module.extra_repr()})"
    lines = [
        f"({name}): " + _tree(child).replace("\n", "\n  ")
        for name, child in module.named_children()
    ]
    count = module.num_params
    tail = f"  # {count:,} params" if count else ""
    if not lines:
        return head + tail
    body = "".join(f"\n  {line}" for line in lines)
    return f"{head[:-1]}{tail}{body}\n)"
