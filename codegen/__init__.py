"""Burnish's generator: model files in, Python source out.

    from burnish.codegen import ModelGen
    ModelGen(out_dir="my_app/models").input("resnet18.onnx").run()

In: a model file and options. Out: a source file and a weights file, both or none.
Invariant: the same file and options give the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burnish.codegen.model_gen import ModelGen
    from burnish.codegen.pipeline import Generated, Options, generate, write
    from burnish.codegen.writers import Exported, export, onto

__all__ = [
    "Exported",
    "Generated",
    "ModelGen",
    "Options",
    "export",
    "generate",
    "onto",
    "write",
]
_ELSEWHERE = {
    **dict.fromkeys(("Exported", "export", "onto"), "writers"),
    "ModelGen": "model_gen",
}


def __getattr__(name: str) -> Any:
    # on demand, so that the command line starts without what only generating needs
    if name in __all__:
        from burnish.codegen.errors import needing

        with needing(f"burnish.codegen.{name}"):
            where = _ELSEWHERE.get(name, "pipeline")
            return getattr(import_module(f"burnish.codegen.{where}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_UNUSED = ("sympy", "onnx_ir._symbolic_shapes")
"""What onnx-ir imports for its symbolic arithmetic; the generator has its own.

SymPy would be a third of the time that the generator starts in.
"""


class _Later(ModuleType):
    """A lazy module: access to an attribute imports what it is named after."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


class _Finder(MetaPathFinder):
    """Delegates to the other finders, and wraps the loader of onnx-ir."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "onnx_ir":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads onnx-ir with lazy modules for what the generator does not use."""

    def __init__(self, loader: Loader):
        self.loader = loader

    def exec_module(self, module: ModuleType) -> None:
        """Run the package's code, as its own loader does."""
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader
        later = [name for name in _UNUSED if name not in sys.modules]
        sys.modules.update((name, _Later(name)) for name in later)
        try:
            self.loader.exec_module(module)
        finally:
            for name in later:
                del sys.modules[name]


sys.meta_path.insert(0, _Finder())
