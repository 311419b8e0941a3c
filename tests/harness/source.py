"""Generated text next to the graph it comes from: compared, executed, linted.

    check_source(graph([node("Relu", "x", "y")], x=("batch", 4)), '''
    def forward(self, x):
        return ops.relu(x)
    ''')

The golden is a part of the source, or several parts, whose lines must stand there in
this order and without others between; indentation and the lines around are free.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from burnish.codegen.pipeline import Options, generate, write
from tests.harness.reference import judged
from tests.harness.ruff import lint_later

_COUNT = itertools.count()


def node(
    kind: str, inputs: str | Sequence[str], outputs: str, name: str = "", **given: Any
) -> onnx.NodeProto:
    """A node; names of inputs and outputs are separated by blanks, "-" is none."""
    listed = inputs.split() if isinstance(inputs, str) else inputs
    read = ["" if i == "-" else i for i in listed]
    return helper.make_node(kind, read, outputs.split(), name, **given)


def graph(
    nodes: Sequence[onnx.NodeProto],
    weights: dict[str, Any] | None = None,
    outputs: str = "y",
    opset: int = 20,
    **inputs: Any,
) -> onnx.ModelProto:
    """A model; inputs are float32 shapes, or (element type, shape)."""
    values = []
    for name, given in inputs.items():
        typed = len(given) == 2 and isinstance(given[1], tuple)
        kind, shape = given if typed else (TensorProto.FLOAT, given)
        values.append(helper.make_tensor_value_info(name, kind, shape))
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    kept = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in (weights or {}).items()
    ]
    made = helper.make_graph(nodes, "model", values, ends, kept)
    used = [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=used, ir_version=10)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Small random weights."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 2


def source_of(model: onnx.ModelProto, folder: Path, **options: Any) -> tuple[str, Any]:
    """The text, and the module with its weights."""
    path = folder / f"model{next(_COUNT)}.onnx"
    onnx.save(model, path)
    files = write(generate(path, Options(**options)), folder)
    spec = importlib.util.spec_from_file_location(files[0].stem, files[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[files[0].stem] = module
    try:
        spec.loader.exec_module(module)
        kind = module.Model
        if options.get("embed"):
            made = kind.from_embedded()
        else:
            made = kind() if len(files) == 1 else kind.from_file()
    finally:
        del sys.modules[files[0].stem]
    return files[0].read_text(), made


def check_source(
    model: onnx.ModelProto,
    *goldens: str,
    size: int = 3,
    rtol: float = 1e-5,
    feeds: dict[str, np.ndarray] | None = None,
    **options: Any,
) -> str:
    """Generate, compare with the goldens, lint, run against the onnx reference."""
    with tempfile.TemporaryDirectory() as folder:
        text, module = source_of(model, Path(folder), **options)
    for golden in goldens:
        part = textwrap.dedent(golden).strip("\n")
        indents = (textwrap.indent(part, " " * n) for n in (0, 4, 8))
        assert any(f"\n{block}\n" in f"\n{text}" for block in indents), text
    lint_later(text)
    feeds = feeds or _feeds(model, size)
    expected = judged(model, feeds)
    found = module(*feeds.values())
    found = found if isinstance(found, tuple) else (found,)
    for y, wanted in zip(found, expected, strict=True):
        assert np.dtype(y.dtype) == wanted.dtype
        assert y.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(y), wanted, rtol, 1e-6, err_msg=text)
    return text


def _feeds(model: onnx.ModelProto, size: int) -> dict[str, np.ndarray]:
    rng, feeds = np.random.default_rng(1), {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value or size for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        drawn = rng.normal(size=shape) * (1 if dtype.kind == "f" else 3)
        feeds[value.name] = (
            np.abs(drawn).astype(dtype)
            if dtype.kind in "iu"
            else (drawn > 0 if dtype.kind == "b" else drawn.astype(dtype))
        )
    return feeds
