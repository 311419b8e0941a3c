"""Summarize a model file: operators, parameters, shapes, unsupported operators."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from burnish.codegen import feeds
from burnish.codegen.account import Account
from burnish.codegen.errors import silent, spelled
from burnish.codegen.ops import find
from burnish.codegen.passes.constants.fold_constants import fold_constants
from burnish.codegen.passes.graph import all_nodes
from burnish.codegen.readers import read, valid_or_refused
from burnish.codegen.readers.sizes import shapes
from burnish.codegen.tools.flops import Unknown, macs

_ROUNDS = 5


@dataclass(frozen=True)
class Port:
    """An input or output: `float32[batch, 3, 224, 224]`."""

    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype or '?'}[...]"
        dims = ("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.dtype or '?'}[{', '.join(dims)}]"


@dataclass(frozen=True)
class Operator:
    """How often one operator occurs, and whether it has an import rule."""

    domain: str
    op_type: str
    version: int
    count: int
    supported: bool
    nodes: tuple[str, ...] = ()  #: names, where there is no import rule


@dataclass(frozen=True)
class Weights:
    """The initializers of one dtype."""

    dtype: str
    tensors: int
    parameters: int
    bytes: int


@dataclass(frozen=True)
class Inspection:
    """The report of `burnish inspect`."""

    model: str
    sha256: str
    producer: str
    ir_version: int
    opset: int  #: as the file declares it
    domains: dict[str, int]  #: the others that it imports
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: int
    operators: tuple[Operator, ...]
    coverage: float  #: share of nodes that have an import rule
    weights: tuple[Weights, ...]
    parameters: int
    bytes: int
    macs: int  #: multiply-accumulates of one forward pass
    flops: int
    assumed: tuple[str, ...]  #: open dimensions that counted as 1
    uncounted: tuple[str, ...]  #: nodes left out: a shape is not known
    notes: tuple[str, ...]

    @property
    def convertible(self) -> bool:
        """Whether every operator has an import rule."""
        return all(operator.supported for operator in self.operators)


def inspect(path: str | Path, dims: Mapping[str, int] | None = None) -> Inspection:
    """Read a model file and describe it; weights are not read.

    dims: sizes of open dimensions for the count of FLOPs, 1 by default.
    """
    with valid_or_refused(Path(path)):
        return _inspected(Path(path), dims or {})


def _inspected(path: Path, dims: Mapping[str, int]) -> Inspection:
    source = read(path)
    model, graph = source.model, source.model.graph
    nodes = all_nodes(model)
    operators = _operators(model, nodes)
    covered = sum(o.count for o in operators if o.supported)
    weights = _weights(graph.initializers.values())
    inputs, outputs = tuple(map(_port, graph.inputs)), tuple(map(_port, graph.outputs))
    assumed = _close(model, dims)
    total, uncounted = _costs(all_nodes(model))
    return Inspection(
        model=str(path),
        sha256=source.sha256,
        producer=" ".join(filter(None, (model.producer_name, model.producer_version))),
        ir_version=model.ir_version or 0,
        opset=source.opset,
        domains={d: v for d, v in sorted(model.opset_imports.items()) if d},
        inputs=inputs,
        outputs=outputs,
        nodes=len(nodes),
        operators=operators,
        coverage=covered / len(nodes) if nodes else 1.0,
        weights=weights,
        parameters=sum(w.parameters for w in weights),
        bytes=sum(w.bytes for w in weights),
        macs=total,
        flops=2 * total,
        assumed=tuple(sorted(assumed)),
        uncounted=tuple(uncounted),
        notes=source.notes,
    )


def _operators(model: ir.Model, nodes: list[ir.Node]) -> tuple[Operator, ...]:
    """The most frequent first."""
    kinds: Counter[tuple[str, str, int]] = Counter()
    names: dict[tuple[str, str, int], list[str]] = {}
    for node in nodes:
        version = node.version or model.opset_imports.get(node.domain, 1)
        kind = (node.domain, node.op_type, version)
        kinds[kind] += 1
        names.setdefault(kind, []).append(node.name or "")
    found = []
    for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
        known = find(*kind) is not None
        missing = () if known else tuple(names[kind])
        found.append(Operator(*kind, count, known, missing))
    return tuple(found)


def _weights(values: Iterable[ir.Value]) -> tuple[Weights, ...]:
    tensors: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for value in values:
        tensor = value.const_value
        if tensor is None:
            continue
        name = _dtype(tensor.dtype)
        tensors[name] += 1
        elements[name] += tensor.size
        if tensor.dtype is ir.DataType.STRING:
            size[name] += sum(map(len, tensor.numpy().reshape(-1)))
        else:
            size[name] += math.ceil(tensor.size * tensor.dtype.bitwidth / 8)
    return tuple(
        Weights(name, count, elements[name], size[name])
        for name, count in sorted(tensors.items(), key=lambda item: -size[item[0]])
    )


def _close(model: ir.Model, dims: Mapping[str, int]) -> set[str]:
    """Give every open dimension of the inputs a number, in place; those assumed.

    Raises UsageError for a size of a dimension that no input has.
    """
    known = list(feeds.dimensions(model))
    feeds.refuse_unknown(dims, known, spelled("dims", "--dim"))
    assumed: set[str] = set()
    for value in model.graph.inputs:
        sizes = []
        for dim in value.shape or ():
            name = "" if isinstance(dim, int) else str(dim.value or "?")
            if name and name not in dims:
                assumed.add(name)
            sizes.append(dim if isinstance(dim, int) else dims.get(name, 1))
        if value.shape is not None:
            value.shape = ir.Shape(sizes)
    # shapes make shape arithmetic constant, and that makes shapes
    for _ in range(_ROUNDS):
        shapes.infer(model, silent)
        if not fold_constants(model, Account()):
            break
    return assumed


def _costs(nodes: list[ir.Node]) -> tuple[int, list[str]]:
    total, uncounted = 0, []
    for node in nodes:
        try:
            total += macs(node) or 0
        except (Unknown, IndexError, ValueError):
            uncounted.append(node.name or node.op_type)
    return total, uncounted


def _port(value: ir.Value) -> Port:
    dims: tuple[int | str | None, ...] | None = None
    if value.shape is not None:
        dims = tuple(d if isinstance(d, int) else d.value for d in value.shape)
    dtype = None if value.dtype is None else _dtype(value.dtype)
    return Port(value.name or "", dtype, dims)


def _dtype(dtype: ir.DataType) -> str:
    """NumPy's name: float32, not FLOAT."""
    return "string" if dtype is ir.DataType.STRING else str(dtype.numpy())
