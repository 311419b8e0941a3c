"""Burnish's generator: model files in, Python source out.

    from burnish.codegen import ModelGen
    ModelGen(out_dir="my_app/models").input("resnet18.onnx").run()

In: a model file and options. Out: a source file and a weights file, both or none.
Invariant: the same file and options give the same bytes.
"""

from __future__ import annotations

from importlib import import_module
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
