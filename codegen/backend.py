"""ONNX's standard backend interface, through generated source.

    from burnish.codegen.backend import BurnishBackend
    results = BurnishBackend.prepare(model).run([x])

What is run is the module that `burnish generate` would write: it is generated,
imported and called, never interpreted. The interface is that of `onnx.backend.base`.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep

from burnish import Device, Tensor, nn
from burnish.codegen.pipeline import generate
from burnish.errors import DeviceError
from burnish.nn.core import tables
from burnish.serialize import Weights

_numbers = itertools.count()


class BurnishBackend(Backend):
    """Runs ONNX models through the source that is generated for them."""

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", **options: Any
    ) -> BurnishModel:
        """A generated module for `model`; device: "CPU", "CUDA" or "CUDA:1".

        Raises ConversionError when the model cannot be converted.
        """
        return BurnishModel(imported(model).to(_device(device)))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """The results of one node; options: `opset_version` of its domain."""
        names = [name for name in node.input if name]
        given = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for name, x in zip(names, inputs, strict=True)
        ]
        made = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", given, made)
        version = options.get("opset_version", onnx.defs.onnx_opset_version())
        opset = onnx.helper.make_opsetid(node.domain, version)
        model = onnx.helper.make_model(graph, opset_imports=[opset])
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can run there: the CPU always, CUDA where CuPy finds a GPU."""
        try:
            return _device(device).xp is not None
        except DeviceError:
            return False


class BurnishModel(BackendRep):
    """A generated module behind the interface."""

    def __init__(self, module: nn.Module):
        self.module = module

    def run(self, inputs: Any, **options: Any) -> tuple[Any, ...]:
        """The outputs as NumPy arrays (lists for sequences, None for no value)."""
        given = (self._given(value) for value in inputs)
        results = self.module(*given)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(map(_plain, results))

    def _given(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._given(item) for item in value]
        if value is None or isinstance(value, Mapping):
            return value
        return Tensor(value, device=self.module.device)


def imported(model: onnx.ModelProto) -> Any:
    """An object of the class that is generated for the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        made = generate(path)
        state: Any = {entry.path: entry.read().copy() for entry in made.weights}
    weights = Weights(state, made.name, "arrays", metadata=made.metadata)
    module = types.ModuleType(f"burnish_generated_{next(_numbers)}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(made.text, f"<{made.name}>", "exec"), vars(module))
        model = vars(module)["Model"]().load_state_dict(weights)
        tables.restore(model, weights)
        return model
    finally:
        del sys.modules[module.__name__]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.numpy() if isinstance(value, Tensor) else value


def _device(name: str) -> Device:
    """ONNX's spelling of a device."""
    return Device(name.lower())
