"""Shape and type inference on a model without its weights.

Where it cannot tell, shapes stay open; what no array can have is an error.
"""

from __future__ import annotations

import itertools
from typing import Any

import onnx
import onnx_ir as ir

from burnish.codegen.errors import Explain, ReadError
from burnish.codegen.ops import Trait, having
from burnish.codegen.readers import native
from burnish.codegen.readers.message import all_bodies, drop_maps
from burnish.codegen.symbolic.sizes import MOST_DIMS

_NO_NUMBERS, _NOTHING = "burnish.no_data_propagation", "burnish.no_inference"
_UNKNOWN, _PLACES = "burnish.unknown", "burnish.places"
_HOW = {True: " from the numbers in them", False: ""}

_INT64 = onnx.TensorProto.INT64
_SIZES = (ir.DataType.INT32, ir.DataType.INT64)

_OF_TREES = ("nodes_", "class_", "target_")
"""Prefixes of attributes of nodes and leaves; no shape depends on them."""

_SHAPE_OF_INPUT = {
    "Gelu": 20,
    "RMSNormalization": 23,
    "RotaryEmbedding": 23,
    "Swish": 24,
}
"""Operators whose result is like their first input, and the opset that has them.

Reading onnxruntime's operators puts them into files of earlier opsets.
"""

_AXES = dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceSum"), ("axes", 13))
_AXES |= {"Split": ("split", 13)}
_AXES |= {
    f"Reduce{kind}": ("axes", 18)
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod")
}
_AXES["ReduceSumSquare"] = ("axes", 18)
"""Operators whose second input was an attribute, and the opset that changed it."""

_SHAPE_OF_SOME_AXES = 15
"""The opset whose Shape has start and end; inference of earlier ones ignores them."""

SMALL = 1024  # bytes; larger initializers say only their type and shape


def infer(model: ir.Model, explain: Explain) -> bool:
    """Fill in what ONNX's inference knows and the file does not say; True if any."""
    message = _inferred(model, explain)
    if message is None:
        return False
    changed = False
    bodies = all_bodies([message.graph])
    for graph, body in zip(model.graphs(), bodies, strict=False):
        drop_maps(body)  # inference finds them again
        infos = {i.name: i for i in (*body.input, *body.output, *body.value_info)}
        results = (value for node in graph for value in node.outputs)
        for value in (*graph.initializers.values(), *graph.inputs, *results):
            if _is_known(value):
                continue
            if (tensor := value.const_value) is not None:
                dims, kind = tensor.shape.numpy(), ir.TensorType(tensor.dtype)
                changed |= _adopt(value, ir.Value(shape=ir.Shape(dims), type=kind))
            elif (info := infos.get(value.name)) is not None:
                theirs = ir.serde.deserialize_value_info_proto(info, None)
                _check(info.name, theirs)
                changed |= _adopt(value, theirs)
    return changed


def _is_known(value: ir.Value) -> bool:
    """Whether inference has nothing to add."""
    return (
        value.type is not None
        and value.shape is not None
        and all(isinstance(dim, int) for dim in value.shape)
    )


def refuse_conflicts(model: ir.Model) -> None:
    """Raise ReadError for operands that do not broadcast.

    A shape that the file declares may be wrong, so ONNX's inference has to find them
    without it.
    """
    kinds = having(Trait.BROADCAST)
    for graph in model.graphs():
        for node in graph:
            broadcasts = node.domain == "" and node.op_type in kinds
            shapes = [v.shape for v in node.inputs if v and v.shape is not None]
            if broadcasts and _conflict(shapes):
                if not _is_inconsistent(model):
                    return
                raise ReadError(
                    f"node {node.name!r} ({node.op_type}): expected inputs that "
                    f"broadcast, got {' and '.join(map(str, shapes))}; export it again"
                )


def _conflict(shapes: list[ir.Shape]) -> bool:
    """Whether two of them have different sizes, and none of 1, in one place."""
    places = itertools.zip_longest(*(reversed(tuple(shape)) for shape in shapes))
    known = ({d for d in dims if isinstance(d, int) and d != 1} for dims in places)
    return any(len(sizes) > 1 for sizes in known)


def _is_inconsistent(model: ir.Model) -> bool:
    """Whether inference finds sizes that do not broadcast, but for declared shapes."""
    message = without_weights(model)
    for body in all_bodies([message.graph]):
        del body.value_info[:]
    try:
        native.infer_shapes(message, data_prop=True, strict=True)
    except native.NativeError as error:
        return "Incompatible dimensions" in str(error)
    return False


def complaint(model: ir.Model) -> str:
    """The error of ONNX's checker, weights aside; "" if the model is valid."""
    return native.complaint(without_weights(model))


def _inferred(model: ir.Model, explain: Explain) -> Any:
    """The ModelProto as inference leaves it; None where it cannot.

    Where following the numbers in shapes takes too much, it is not asked for again.
    """
    if model.meta.get(_NOTHING):
        return None
    message = without_weights(model)
    for data_prop in (False,) if model.meta.get(_NO_NUMBERS) else (True, False):
        try:
            return native.infer_shapes(message, data_prop=data_prop)
        except native.NativeError as error:
            reason = str(error).partition("\n")[0]
            explain(f"shapes could not be inferred{_HOW[data_prop]}: {reason}")
            if not isinstance(error, native.LimitError):
                break
            model.meta[_NO_NUMBERS if data_prop else _NOTHING] = True
    return None


def _check(name: str, value: ir.Value) -> None:
    if value.shape is not None and len(value.shape) > MOST_DIMS:
        raise ReadError(
            f"value {name[:80]!r}: expected at most {MOST_DIMS} dimensions, got "
            f"{len(value.shape)}"
        )


def _adopt(value: ir.Value, other: ir.Value) -> bool:
    changed = False
    if value.type is None and other.type is not None:
        value.type, changed = other.type, True
    if other.shape is None or (value.shape and len(value.shape) != len(other.shape)):
        return changed
    if value.shape is None:
        value.shape = other.shape
        return True
    dims = [_dim(a, b) for a, b in zip(value.shape, other.shape, strict=True)]
    if dims != list(value.shape):
        value.shape = ir.Shape(dims)
        return True
    return changed


def _dim(ours: Any, theirs: Any) -> Any:
    """The more telling of two: a number, then our name, then their name."""
    if isinstance(ours, int) or isinstance(theirs, int):
        return ours if isinstance(ours, int) else theirs
    return ours if ours.value is not None else theirs


def without_weights(model: ir.Model) -> Any:
    """A ModelProto where large initializers are inputs of the same type and shape.

    Its floating-point Add, Sub and Mul are Div, which has the same shape: data
    propagation would make of each vector among their inputs a list of its elements.
    """
    held: list[tuple[ir.Value, ir.TensorProtocol]] = []
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and tensor.nbytes > SMALL:
            held.append((value, tensor))
            value.const_value = _placeholder(tensor)
    sums = [node for node in model.graph if _is_no_size(node)]
    kinds = [node.op_type for node in sums]
    trees = [(node, dict(node.attributes)) for node in model.graph if _has_trees(node)]
    try:
        for node, attributes in trees:
            for name in attributes:
                if name.startswith(_OF_TREES):
                    del node.attributes[name]
        for node in sums:
            node.op_type = "Div"
        message: Any = ir.to_proto(model)
    finally:
        for node, attributes in trees:
            node.attributes.clear()
            node.attributes.update(attributes)
        for node, kind in zip(sums, kinds, strict=True):
            node.op_type = kind
        for value, tensor in held:
            value.const_value = tensor
    small = [t for t in message.graph.initializer if not t.external_data]
    large = [t for t in message.graph.initializer if t.external_data]
    message.graph.input.extend(
        onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
        for t in large
    )
    del message.graph.initializer[:]
    message.graph.initializer.extend(small)
    numbers = {tensor.name: tensor for tensor in small}
    _show_inside(message.graph, numbers)
    _stand_in(message.graph, model.opset_imports.get("", 1), numbers)
    return message


def _stand_in(graph: Any, opset: int, numbers: dict[str, Any]) -> None:
    """Write operators of a later opset as that of the model has them, for inference."""
    places = onnx.helper.make_tensor_value_info(_PLACES, _INT64, [None])
    graph.input.append(places)
    for node in (node for inner in all_bodies([graph]) for node in inner.node):
        if (node.domain, node.op_type) == ("burnish", "Attention"):
            node.domain, node.op_type = "", "Gather"  # the last axis is the values'
            node.input[1:] = [_PLACES]
            del node.attribute[:]
            node.attribute.append(onnx.helper.make_attribute("axis", 3))
        if node.domain:
            continue
        attribute, since = _AXES.get(node.op_type, ("", 0))
        if node.op_type == "Shape" and node.attribute and opset < _SHAPE_OF_SOME_AXES:
            node.domain = _UNKNOWN
        elif _SHAPE_OF_INPUT.get(node.op_type, 0) > opset:
            node.op_type = "Identity"
            del node.input[1:], node.attribute[:]
        elif since > opset and len(node.input) > 1:
            if node.input[1] in numbers:
                axes = onnx.numpy_helper.to_array(numbers[node.input[1]])
                new = onnx.helper.make_attribute(attribute, axes.ravel().tolist())
                node.attribute.append(new)
            else:
                node.domain = _UNKNOWN
            del node.input[1:]


def _has_trees(node: ir.Node) -> bool:
    """Whether a node is an ensemble, whose attributes are as long as its trees."""
    return node.op_type.startswith("TreeEnsemble") and node.domain == "ai.onnx.ml"


def _show_inside(graph: Any, numbers: dict[str, Any]) -> None:
    """Give branches and bodies the numbers that they read, by the same names.

    Inference looks up values from outside by their types, not by what they hold.
    """
    for inner in itertools.islice(all_bodies([graph]), 1, None):
        read = dict.fromkeys(name for each in inner.node for name in each.input)
        inner.initializer.extend(numbers[name] for name in read if name in numbers)


def _is_no_size(node: ir.Node) -> bool:
    """Whether a node is arithmetic on tensors that cannot be shapes."""
    return (
        node.op_type in ("Add", "Sub", "Mul")
        and node.domain == ""
        and any(
            value is not None and value.dtype is not None and value.dtype not in _SIZES
            for value in (*node.inputs, *node.outputs)
        )
    )


def _placeholder(tensor: ir.TensorProtocol) -> ir.ExternalTensor:
    return ir.ExternalTensor(
        "weights",
        0,
        0,
        tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name or "",
    )
