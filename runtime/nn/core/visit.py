"""Visitors of a module's tensors with their paths, like `ast.NodeVisitor` for code.

    class Shapes(nn.ModuleVisitor):
        def enter_module(self, path, module):
            print(path, type(module).__name__)

        def visit_float(self, path, tensor):
            print(path, tensor.shape)

    Shapes().visit(model)

`Module.visit` and `Module.map` do with a function where only the tensors matter.
"""

from __future__ import annotations

from typing import Any, TypeVar

from burnish.nn.core.module import Module
from burnish.nn.core.param import Stored

M = TypeVar("M", bound=Module)


class _Walk:
    """modules: those that a hook is called in, from the outermost to its own."""

    def __init__(self) -> None:
        self.modules: list[Module] = []

    def enter_module(self, path: str, module: Module) -> None:
        """Called before a module's tensors and children."""

    def exit_module(self, path: str, module: Module) -> None:
        """Called behind them."""

    def _tensor(self, path: str, tensor: Stored) -> None:
        raise TypeError(f"{type(self).__name__} visits no tensors")

    def _walk(self, module: Module) -> None:
        """Modules and tensors once each, a module's tensors before its children."""
        modules = dict(module.named_modules())
        owned: dict[str, list[tuple[str, Stored]]] = {path: [] for path in modules}
        for path, tensor in module.named_tensors():
            owner = path.rpartition(".")[0]
            while owner not in owned:  # a list or a dict is between
                owner = owner.rpartition(".")[0]
            owned[owner].append((path, tensor))
        open_paths: list[str] = []
        for path, part in modules.items():
            while open_paths and not _is_below(path, open_paths[-1]):
                self._leave(open_paths.pop())
            open_paths.append(path)
            self.modules.append(part)
            self.enter_module(path, part)
            for name, tensor in owned[path]:
                self._tensor(name, tensor)
        while open_paths:
            self._leave(open_paths.pop())

    def _leave(self, path: str) -> None:
        self.exit_module(path, self.modules[-1])
        self.modules.pop()


class ModuleVisitor(_Walk):
    """Looks at every parameter and buffer; subclasses say what they want to see."""

    def visit(self, module: Module) -> None:
        """Walk over a module, its tensors and all below it."""
        self._walk(module)

    def visit_float(self, path: str, tensor: Stored) -> None:
        """Called for every tensor of floating-point numbers."""

    def visit_int(self, path: str, tensor: Stored) -> None:
        """Called for every tensor of integers."""

    def visit_bool(self, path: str, tensor: Stored) -> None:
        """Called for every tensor of booleans."""

    def _tensor(self, path: str, tensor: Stored) -> None:
        getattr(self, f"visit_{_kind(tensor)}")(path, tensor)


class ModuleMapper(_Walk):
    """Gives parameters and buffers new values; what no method is for stays."""

    def map(self, module: M) -> M:
        """Walk over a module and give its tensors their new values, in place."""
        self._walk(module)
        return module

    def map_float(self, path: str, tensor: Stored) -> Any:
        """The new value of a tensor of floating-point numbers."""
        return tensor

    def map_int(self, path: str, tensor: Stored) -> Any:
        """The new value of a tensor of integers."""
        return tensor

    def map_bool(self, path: str, tensor: Stored) -> Any:
        """The new value of a tensor of booleans."""
        return tensor

    def _tensor(self, path: str, tensor: Stored) -> None:
        value = getattr(self, f"map_{_kind(tensor)}")(path, tensor)
        if value is not tensor:
            tensor.assign(value)


def _kind(tensor: Stored) -> str:
    return {"b": "bool", "i": "int", "u": "int"}.get(tensor.dtype.kind, "float")


def _is_below(path: str, above: str) -> bool:
    return not above or path.startswith(f"{above}.")
