"""Every operator as one file for NumPy alone: the bits that the package computes.

Each operator that has a rule comes once: in the first of ONNX's node cases whose dtypes
NumPy has, else in a small model; each operator of onnxruntime's own once, too. Files of
a group run in one process that imports nothing but NumPy.
"""

from __future__ import annotations

import functools
import json
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burnish import Tensor, seed
from burnish.codegen.errors import ConversionError
from burnish.codegen.ops import registry
from burnish.codegen.pipeline import Options, generate, write
from burnish.codegen.readers.microsoft import DOMAIN, bodies
from burnish.kernels import direct
from tests.codegen.readers.test_microsoft import CASES, SPARSE
from tests.codegen.readers.test_microsoft_formulas import FORMULAS
from tests.conformance.runner import exclusions, plain
from tests.conformance.searches import SEARCHES
from tests.conformance.small import SMALL
from tests.harness.alone import run
from tests.harness.imported import load_class
from tests.harness.onnx_cases import cases

GROUPS = 12

REFUSED = {".ImageDecoder": "burnish.ops.media.picture, which imports PIL"}
"""Operators that one file cannot hold, and what the refusal says."""

LAYERS = tuple(
    f"{DOMAIN}.{kind}"
    for kind in ("DynamicQuantizeLSTM", "MatMulIntegerToFloat", "QAttention", "QMoE")
)
"""Operators whose weights the package brings into another form, one file does not.

They are compared without simplification, which is where layers come from.
"""

RUN = """
import importlib.util, pickle
import numpy as np

folder = sys.argv[1]
with open(f"{folder}/calls.pickle", "rb") as file:
    calls = pickle.load(file)
found = {}
for name, inputs in calls.items():
    spec = importlib.util.spec_from_file_location(name, f"{folder}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)

    def given(value):
        if isinstance(value, list):
            return [given(item) for item in value]
        if value is None or isinstance(value, dict):
            return value
        return module.Tensor(value)

    def plain(value):
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value.numpy() if hasattr(value, "numpy") else value

    getattr(module, "seed", int)(3)
    found[name] = plain(module.Model.from_file()(*map(given, inputs)))
with open(f"{folder}/found.pickle", "wb") as file:
    pickle.dump(found, file)
"""


def operators(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    for node in graph.node:
        yield node.domain, node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)


@functools.cache
def chosen() -> dict[str, tuple[onnx.ModelProto, list[Any]]]:
    """A model and its inputs for each operator, by the operator."""
    found = of_node_cases()
    found |= {name: (small.model, small.inputs) for name, small in SMALL.items()}
    found |= SEARCHES
    alone = (made for made, _ in FORMULAS.values())
    for model, inputs in (*CASES, *SPARSE, *alone):
        found.setdefault(f"{DOMAIN}.{model.graph.name}", (model, inputs))
    return found


def of_node_cases() -> dict[str, tuple[onnx.ModelProto, list[Any]]]:
    """The first of ONNX's node cases of each operator that has a rule."""
    found: dict[str, str] = {}
    for name, case in cases().items():
        if name in exclusions() or "float8" in name.lower() or "int4" in name.lower():
            continue
        for domain, kind in operators(case.model.graph):
            if (domain, kind) in registry:
                found.setdefault(f"{domain}.{kind}", name)
    return {
        operator: (
            cases()[name].model,
            [plain(v) for v in cases()[name].data_sets[0][0]],
        )
        for operator, name in found.items()
    }


def test_every_operator_has_a_model() -> None:
    ruled = {
        f"{domain}.{kind}"
        for domain, kind in registry
        if domain
        or onnx.defs.has(kind)  # an older ONNX has no cases of what came later
    }
    assert ruled <= chosen().keys()
    assert not SMALL.keys() & of_node_cases().keys()
    assert {f"{DOMAIN}.{kind}" for kind in bodies} <= chosen().keys()


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_operator_runs_with_numpy_alone(
    group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "usable", lambda: None)
    names = sorted(chosen())[group::GROUPS]
    calls: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for number, operator in enumerate(names):
        model, inputs = chosen()[operator]
        name = f"case_{number}"
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path)
        try:
            simplify = operator not in LAYERS
            options = Options(standalone=True, simplify=simplify)
            write(generate(path, options), tmp_path)
        except ConversionError as error:
            refused[operator] = str(error)
            continue
        calls[name] = inputs
        expected[name] = packaged(path, inputs, simplify)
    assert refused.keys() == REFUSED.keys() & names, refused
    assert all(REFUSED[name] in message for name, message in refused.items())
    (tmp_path / "calls.pickle").write_bytes(pickle.dumps(calls))
    run(RUN, tmp_path)
    found = pickle.loads((tmp_path / "found.pickle").read_bytes())
    differ = [
        operator
        for number, operator in enumerate(names)
        if (name := f"case_{number}") in calls
        and bits(found[name]) != bits(expected[name])
    ]
    assert differ == []


def packaged(path: Path, inputs: list[Any], simplify: bool) -> Any:
    """What the module that imports the package gives."""
    made = path.parent / "package"
    source, *weights = write(generate(path, Options(simplify=simplify)), made)
    model = load_class(source).from_file(*weights)
    seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bare(model(*map(given, inputs)))


def given(value: Any) -> Any:
    if isinstance(value, list):
        return [given(item) for item in value]
    return value if value is None or isinstance(value, dict) else Tensor(value)


def bare(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [bare(item) for item in value]
    return value.numpy() if hasattr(value, "numpy") else value


def bits(value: Any) -> Any:
    if isinstance(value, list):
        return [bits(item) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    text = value.dtype.kind == "O"
    data = json.dumps(value.tolist()) if text else value.tobytes()
    return str(value.dtype), value.shape, data
