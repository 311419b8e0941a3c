"""Rewrite the tensors' values of an ONNX file; everything else is copied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from burnish._files.atomic import atomic_write
from burnish.codegen.errors import ExportError, keep_inputs
from burnish.codegen.weights.origin import Use

_ALIGNED = 64
_CHUNK = 1 << 20


class GraphFile:
    """A model file as it is stored, with its tensors by the names of their values."""

    def __init__(self, path: Path):
        self.path = path
        self.model: Any = onnx.load(os.fspath(path), load_external_data=False)
        self.tensors: dict[str, Any] = {}
        self.nodes: dict[str, Any] = {}
        self.new: dict[int, bytes] = {}
        self.read: dict[int, list[str]] = {}
        for graph in _graphs(self.model.graph):
            for tensor in graph.initializer:
                self.tensors.setdefault(tensor.name, tensor)
            for node in graph.node:
                self.nodes.update((name, node) for name in node.output)
                self.read[id(node)] = list(node.input)
                held = {a.name: a for a in node.attribute}
                if node.op_type == "Constant" and "value" in held:
                    self.tensors.setdefault(node.output[0], held["value"].t)

    def assign(self, name: str, before: np.ndarray, after: np.ndarray) -> None:
        """Give a tensor other values.

        before: what the reader saw under this name; it may have made some on its own.
        """
        tensor = self._tensor(name, before)
        data = onnx.numpy_helper.from_array(after).raw_data
        if uses_external_data(tensor):
            self.new[id(tensor)] = data
            return
        kept = (tensor.name, tensor.data_type, tuple(tensor.dims), tensor.doc_string)
        tensor.Clear()
        tensor.name, tensor.data_type = kept[:2]
        tensor.dims.extend(kept[2])
        if kept[3]:
            tensor.doc_string = kept[3]
        tensor.raw_data = data

    def split(self, name: str, values: np.ndarray, uses: tuple[Use, ...]) -> None:
        """Let some of a tensor's readers read another one."""
        taken = {*self.tensors, *self.nodes}
        numbers = (f"{name}_{i}" for i in range(1, len(taken) + 2))
        own = next(each for each in numbers if each not in taken)
        for output, index in uses:
            node, index = self._reader(name, output, index)
            node.input[index] = own
        tensor = onnx.numpy_helper.from_array(values, own)
        self.model.graph.initializer.append(tensor)
        self.tensors[own] = self.model.graph.initializer[-1]

    def _reader(self, name: str, output: str, index: int) -> tuple[Any, int]:
        """The node that reads a tensor for an output, and at which input.

        Where passes have fused nodes, it is the nearest one that the output is made by.
        """
        front, seen = [output], {output}
        while front:
            made = [n for n in map(self.nodes.get, front) if n is not None]
            found = [
                (node, i)
                for node in {id(n): n for n in made}.values()
                for i, each in enumerate(self.read[id(node)])
                if each == name and (i == index or front != [output])
            ]
            if len(found) == 1 and found[0][0].input[found[0][1]] == name:
                return found[0]
            if found:
                break
            front = [i for node in made for i in self.read[id(node)] if i not in seen]
            seen.update(front)
        raise ExportError(
            f"{name!r} of {self.path} is read by several modules whose weights differ "
            f"now, and for {output!r} no single node of the graph reads it"
        )

    def _tensor(self, name: str, before: np.ndarray) -> Any:
        tensor = self.tensors.get(name)
        folder = os.fspath(self.path.parent)
        same = (
            tensor is not None
            and tuple(tensor.dims) == before.shape
            and onnx.numpy_helper.to_array(tensor, folder).tobytes() == before.tobytes()
        )
        if not same:
            raise ExportError(
                f"{self.path}: expected a tensor {name!r} with the numbers that the "
                "source was made from; the file has them in another form, inside of a "
                "function or of an operator that is rewritten as it is read"
            )
        return tensor

    def write(self, out: Path) -> list[Path]:
        """Write the file, and beside it the data of tensors that have theirs beside."""
        outside = [t for t in self._everyone() if uses_external_data(t)]
        data = out.with_name(f"{out.name}.data")
        inputs = {self.path, *map(self._at, outside)}
        keep_inputs((out, data) if outside else (out,), inputs)
        if not outside:
            with atomic_write(out) as file:
                file.write(self.model.SerializeToString())
            return [out]
        with atomic_write(out) as file:
            with atomic_write(data) as beside:
                for tensor in outside:
                    self._move(tensor, beside, data.name)
            file.write(self.model.SerializeToString())
        return [out, data]

    def _everyone(self) -> Iterator[Any]:
        """Every tensor of the file, of attributes too."""
        for graph in _graphs(self.model.graph):
            yield from graph.initializer
            yield from _held(graph.node)
        for function in self.model.functions:
            yield from _held(function.node)

    def _at(self, tensor: Any) -> Path:
        return self.path.parent / str(ExternalDataInfo(tensor).location)

    def _move(self, tensor: Any, out: BinaryIO, name: str) -> None:
        """Append the tensor's bytes, and record their offset."""
        out.write(b"\0" * (-out.tell() % _ALIGNED))
        start, info = out.tell(), ExternalDataInfo(tensor)
        if id(tensor) in self.new:
            out.write(self.new[id(tensor)])
        else:
            with self._at(tensor).open("rb") as source:
                source.seek(info.offset or 0)
                left = info.length or -1
                while piece := source.read(_CHUNK if left < 0 else min(_CHUNK, left)):
                    out.write(piece)
                    left -= len(piece) if left > 0 else 0
                    if left == 0:
                        break
        del tensor.external_data[:]
        where = {"location": name, "offset": start, "length": out.tell() - start}
        for key, value in where.items():
            tensor.external_data.add(key=key, value=str(value))


def _graphs(graph: Any) -> Iterator[Any]:
    """The graph and those of its nodes' attributes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node or body.initializer:
                    yield from _graphs(body)


def _held(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
