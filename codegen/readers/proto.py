"""A ModelProto brought into the shape that the Graph can be built from.

One spelling of the default domain, an opset for every domain that is used, no sparse
tensors, and every tensor as long as its shape says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from burnish.codegen.errors import Explain, ReadError

NEWEST = 28
_EXTERNAL = onnx.TensorProto.EXTERNAL
_LIMIT = 1 << 40  # elements; more is damage, not a tensor


def clean(model: Any, explain: Explain) -> int:
    """Normalise `model` in place; the default domain's opset as declared."""
    if not model.ir_version:
        explain("the file declares no ir_version; read as the newest")
    bodies = [model.graph, *model.functions]
    for nodes in bodies:
        _clean_body(nodes)
    _merge_imports(model, "the model")
    for function in model.functions:
        function.domain = _domain(function.domain)
        _merge_imports(function, f"function {function.name!r}")
    _add_missing_imports(model, explain)
    for where, tensor in _tensors(bodies):
        _check(where, tensor)
    return next((o.version for o in model.opset_import if not o.domain), NEWEST)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _clean_body(body: Any) -> None:
    _check_text(body)
    for node in body.node:
        _check_text(node)
        node.domain = _domain(node.domain)
        for attribute in node.attribute:
            if attribute.HasField("sparse_tensor"):
                dense = _dense(attribute.sparse_tensor, node.name)
                attribute.ClearField("sparse_tensor")
                attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
                attribute.t.CopyFrom(dense)
            for graph in (attribute.g, *attribute.graphs):
                if graph.node or graph.sparse_initializer:
                    _clean_body(graph)
    if isinstance(body, onnx.GraphProto):
        for sparse in body.sparse_initializer:
            body.initializer.append(_dense(sparse, sparse.values.name))
        body.ClearField("sparse_initializer")
        for info in (*body.output, *body.value_info):
            if info.type.sequence_type.elem_type.HasField("map_type"):
                info.ClearField("type")  # the Graph has no maps; Python's need no type


_TEXT = ("name", "domain", "op_type", "overload", "input", "output", "doc_string")


def _check_text(message: Any) -> None:
    """Names are text: protobuf hands out bytes where they are no valid UTF-8."""
    infos = isinstance(message, onnx.GraphProto)
    for field in _TEXT:
        held: Any = getattr(message, field, "")
        if infos and field in ("input", "output"):
            held = [info.name for info in held]
        for text in (held,) if isinstance(held, str | bytes) else held:
            if isinstance(text, bytes):
                raise ReadError(
                    f"{type(message).__name__}.{field}: expected text in UTF-8, got "
                    f"{text[:40]!r}; the file is damaged"
                )


def _dense(sparse: Any, where: str) -> Any:
    """A SparseTensorProto as a TensorProto of the same name."""
    try:
        if math.prod(sparse.dims) > _LIMIT or min(sparse.dims, default=0) < 0:
            raise ValueError(f"shape {list(sparse.dims)}")
        values = onnx.numpy_helper.to_array(sparse.values)
        indices = onnx.numpy_helper.to_array(sparse.indices)
        dense = np.zeros(tuple(sparse.dims), values.dtype)
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
    except (ValueError, IndexError, TypeError, MemoryError) as error:
        raise ReadError(
            f"sparse tensor {where!r}: expected values and indices that fit its "
            f"shape, got {error}; export the model again"
        ) from None
    return onnx.numpy_helper.from_array(dense, sparse.values.name)


def _merge_imports(owner: Any, where: str) -> None:
    versions: dict[str, int] = {}
    for entry in owner.opset_import:
        domain = _domain(entry.domain)
        if versions.setdefault(domain, entry.version) != entry.version:
            raise ReadError(
                f"{where} imports {domain or 'ai.onnx'} twice, as opset "
                f"{versions[domain]} and {entry.version}; expected one version"
            )
    del owner.opset_import[:]
    owner.opset_import.extend(
        onnx.helper.make_opsetid(domain, version)
        for domain, version in versions.items()
    )


def _add_missing_imports(model: Any, explain: Explain) -> None:
    known = {entry.domain for entry in model.opset_import}
    local = {function.domain for function in model.functions}
    used = {node.domain for node in _nodes(model.graph)}
    if "" in used - known - local:
        if model.ir_version >= 3:
            raise ReadError(
                "expected an opset for the ONNX operators, the file imports none; "
                "it was cut off or written wrongly: export it again"
            )
        explain("the file declares no opset (ir_version < 3): read as opset 1")
    for domain in sorted(used - known - local):
        if domain:
            explain(f"domain {domain!r} is used without an opset: read as version 1")
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _tensors(bodies: list[Any]) -> Iterator[tuple[str, Any]]:
    for body in bodies:
        for tensor in getattr(body, "initializer", ()):
            yield f"initializer {tensor.name!r}", tensor
        for node in body.node:
            where = f"node {node.name!r} ({node.op_type})"
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield where, attribute.t
                for tensor in attribute.tensors:
                    yield where, tensor
                yield from _tensors([attribute.g, *attribute.graphs])


def _check(where: str, tensor: Any) -> None:
    """The data is as long as the shape and dtype say."""
    try:
        dtype = ir.DataType(tensor.data_type)
        known = dtype is not ir.DataType.UNDEFINED
    except ValueError:
        known = False
    if not known:
        raise ReadError(f"{where}: data type {tensor.data_type} does not exist")
    dims = list(tensor.dims)
    if min(dims, default=0) < 0 or math.prod(dims) > _LIMIT:
        raise ReadError(f"{where}: {dims} is no shape; the file is damaged")
    expected, got = math.prod(dims), _count(tensor, dtype)
    if got is not None and got != expected:
        raise ReadError(
            f"{where}: expected {expected} elements for shape {dims}, got {got}; "
            "the file is damaged"
        )


def _count(tensor: Any, dtype: ir.DataType) -> int | None:
    """The number of elements in the tensor's data; None when it lies elsewhere."""
    if tensor.data_location == _EXTERNAL:
        return None
    if dtype is ir.DataType.STRING:
        return len(tensor.string_data)
    if tensor.HasField("raw_data"):
        wanted = math.ceil(math.prod(tensor.dims) * dtype.bitwidth / 8)
        exact = len(tensor.raw_data) == wanted
        return (
            math.prod(tensor.dims)
            if exact
            else len(tensor.raw_data) * 8 // dtype.bitwidth
        )
    field = onnx.helper.tensor_dtype_to_field(int(dtype))
    count = len(getattr(tensor, field))
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return count // 2
    if dtype.bitwidth < 8:
        size = math.prod(tensor.dims)
        return size if count == math.ceil(size * dtype.bitwidth / 8) else count
    return count
