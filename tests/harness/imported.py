"""A model file, or one built in a test, as the module that is generated from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import onnx

from burnish.codegen.pipeline import Generated, Options, generate, write


def imported(source: Path | onnx.ModelProto | Generated | str, folder: Path) -> Any:
    """The generated class's instance with the file's weights.

    source: a file, a model, one in ONNX's text form, or what is generated already.
    """
    if isinstance(source, str):
        source = onnx.parser.parse_model(source)
    if isinstance(source, onnx.ModelProto):
        onnx.checker.check_model(source, full_check=True)
        path = folder / "model.onnx"
        onnx.save(source, path)
        source = path
    if not isinstance(source, Generated):
        source = generate(source, Options(name="generated"))
    module, *stored = write(source, folder)
    return load_class(module).from_file(*stored)


def load_class(path: Path) -> Any:
    """`Model` of a source file that is in no package."""
    return load_module(path).Model


def load_module(path: Path) -> Any:
    """The module of a source file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
