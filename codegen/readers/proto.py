"""Repair and check a ModelProto before the Graph is built from it.

One spelling of the default domain, an opset for every domain that is used, bodies with
the inputs that are fed, no sparse tensors, and every tensor as long as its shape says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from burnish._files.budget import Budget
from burnish.codegen.errors import Explain, ReadError
from burnish.codegen.readers.checks import attributes
from burnish.codegen.readers.checks.lengths import check_tensor
from burnish.codegen.readers.inlining.captured import drop_captured
from burnish.codegen.readers.message import NEWEST, all_bodies, all_nodes, drop_maps
from burnish.codegen.readers.sizes import axes
from burnish.codegen.readers.wire import table_of
from burnish.codegen.symbolic.sizes import MOST_DIMS

#: Attributes that hold a number or two for each axis.
_PER_AXIS = frozenset(
    (
        *("axes", "axis", "dilations", "kernel_shape", "output_padding"),
        *("output_shape", "pads", "perm", "shape", "strides"),
    )
)
_DTYPES = frozenset(onnx.TensorProto.DataType.values()) - {0}
_LONG_NAME = 256  # of a dimension: sums and products repeat it
_NO_NAME = re.compile(
    r"(\W|\b(0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*)\b)*"
)
"""Text that tools write for an unknown size: nothing, a mark, or a number."""


def clean(model: Any, explain: Explain, budget: Budget) -> int:
    """Normalize `model` in place; the default domain's opset as declared.

    budget: what sparse tensors take once they are dense.
    """
    if not model.ir_version:
        explain("the file declares no ir_version; read as the newest")
    bodies = [model.graph, *model.functions]
    for body in bodies:
        _clean_body(body, budget)
        drop_captured(body)
    _merge_imports(model, "the model")
    for function in model.functions:
        function.domain = _domain(function.domain)
        _merge_imports(function, f"function {function.name!r}")
    _add_missing_imports(model, explain)
    infos = [info for body in all_bodies(bodies) for info in _infos(body)]
    for info in infos:
        _check_shape(info)
    axes.rename_axes(model.graph, infos, explain)
    for where, tensor in _tensors(bodies):
        check_tensor(where, tensor)
    return next((o.version for o in model.opset_import if not o.domain), NEWEST)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _clean_body(body: Any, budget: Budget) -> None:
    _check_text(body)
    for node in body.node:
        _check_text(node)
        node.domain = _domain(node.domain)
        attributes.check(node)
        node.ClearField("device_configurations")  # hints, and source has no devices
        for attribute in node.attribute:
            cut = table_of(attribute) is not None
            if attribute.name in _PER_AXIS and (
                cut or len(attribute.ints) > 2 * MOST_DIMS
            ):
                got = "a long list" if cut else f"{len(attribute.ints)} numbers"
                raise ReadError(
                    f"node {node.name!r} ({node.op_type}): expected {attribute.name} "
                    f"for at most {MOST_DIMS} axes, got {got}"
                )
            if attribute.HasField("sparse_tensor"):
                name = node.name or next(iter(node.output), "")
                dense = _dense(attribute.sparse_tensor, name, budget)
                attribute.ClearField("sparse_tensor")
                attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
                attribute.t.CopyFrom(dense)
            for graph in (attribute.g, *attribute.graphs):
                if graph.node or graph.sparse_initializer:
                    _clean_body(graph, budget)
    if isinstance(body, onnx.GraphProto):
        for sparse in body.sparse_initializer:
            body.initializer.append(_dense(sparse, sparse.values.name, budget))
        body.ClearField("sparse_initializer")
        drop_maps(body)


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


def _dense(sparse: Any, where: str, budget: Budget) -> Any:
    """A SparseTensorProto as a TensorProto of the same name."""
    dims = list(sparse.dims)
    try:
        for tensor in (sparse.values, sparse.indices):
            check_tensor(f"sparse tensor {where!r}", tensor)
        if min(dims, default=0) < 0 or len(dims) > MOST_DIMS:
            raise ValueError(f"shape {dims[: MOST_DIMS + 1]}")
        size = (
            math.prod(dims)
            * onnx.helper.tensor_dtype_to_np_dtype(sparse.values.data_type).itemsize
        )
        if not budget.fits(size):
            raise ValueError(f"shape {dims}, which takes {size} bytes once it is dense")
        budget.take(size)
        values = onnx.numpy_helper.to_array(sparse.values)
        indices = onnx.numpy_helper.to_array(sparse.indices)
        dense = np.zeros(tuple(dims), values.dtype)
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
    except (ValueError, IndexError, TypeError, KeyError, MemoryError) as error:
        raise ReadError(
            f"sparse tensor {where!r}: expected values and indices that fit its "
            f"shape, and at most {budget.left} bytes, got {error}; export the model "
            "again"
        ) from None
    return onnx.numpy_helper.from_array(dense, sparse.values.name)


def _merge_imports(owner: Any, where: str) -> None:
    versions: dict[str, int] = {}
    for entry in owner.opset_import:
        domain = _domain(entry.domain)
        if versions.setdefault(domain, entry.version) != entry.version:
            raise ReadError(
                f"{where} imports {domain or 'ai.onnx'} twice, as opset "
                f"{versions[domain]} and {entry.version}; expected one version: "
                "remove from opset_import what the nodes were not written for "
                "(onnxruntime takes the last)"
            )
    del owner.opset_import[:]
    owner.opset_import.extend(
        onnx.helper.make_opsetid(domain, version)
        for domain, version in versions.items()
    )


def _add_missing_imports(model: Any, explain: Explain) -> None:
    known = {entry.domain for entry in model.opset_import}
    local = {function.domain for function in model.functions}
    used = {node.domain for node in all_nodes(model.graph)}
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


def _infos(body: Any) -> Iterator[Any]:
    if isinstance(body, onnx.GraphProto):
        yield from body.input
        yield from body.output
    yield from body.value_info


def _check_shape(info: Any) -> None:
    """Check the rank; make negative dimensions and invalid types unknown."""
    kind = info.type.tensor_type
    if info.type.HasField("tensor_type") and kind.elem_type not in _DTYPES:
        info.ClearField("type")
    dims = info.type.tensor_type.shape.dim
    if len(dims) > MOST_DIMS:
        raise ReadError(
            f"value {info.name[:80]!r}: expected at most {MOST_DIMS} dimensions, got "
            f"{len(dims)}"
        )
    for dim in dims:
        if dim.dim_value < 0:
            dim.ClearField("dim_value")
        if len(dim.dim_param) > _LONG_NAME or _NO_NAME.fullmatch(dim.dim_param):
            dim.ClearField("dim_param")


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
