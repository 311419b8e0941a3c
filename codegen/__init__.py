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
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
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


class _Lazily(MetaPathFinder):
    """Loads onnx-ir's symbolic arithmetic when it is first used, if ever.

    The generator has its own; SymPy would be a third of the time that it starts in.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in ("sympy", "onnx_ir._symbolic_shapes"):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


sys.meta_path.insert(0, _Lazily())
