"""Declare and build the function bodies of com.microsoft's operators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypedDict, get_args, get_type_hints

import numpy as np
import onnx_ir as ir

from burnish.codegen.errors import WHY_NOT

DOMAIN = "com.microsoft"
END = np.iinfo(np.int64).max
"""The end of an axis, as Slice has it."""
VERSION = 23
"""The opset that bodies are written in."""

Body = Callable[..., Any]
Shared = dict[Hashable, ir.Value]
"""Values that consecutive nodes of one model share."""

_ALIKE = frozenset(
    ("Add", "Concat", "Conv", "Gemm", "MatMul", "Mul", "Reshape", "Split", "Transpose")
)
"""Operators that give the type of what they take."""

bodies: dict[str, Body] = {}
"""Function bodies of onnxruntime's operators, by name."""


class Unreadable(Exception):
    """Why a node cannot be written in ONNX's operators."""


class Quantized(NamedTuple):
    """A quantized tensor: `x: Quantized` declares x, x_scale and x_zero_point."""

    codes: Any
    scale: Any
    zero_point: Any = None


class Scale(NamedTuple):
    """How a result is quantized: `y: Scale` declares y_scale and y_zero_point."""

    scale: Any
    zero_point: Any = None


_GROUPS: dict[type, tuple[str, ...]] = {
    Quantized: ("", "_scale", "_zero_point"),
    Scale: ("_scale", "_zero_point"),
}


class Pooling(TypedDict, total=False):
    """The attributes of a window: `**window: Unpack[Pooling]`."""

    auto_pad: str
    kernel_shape: Any
    pads: Any
    strides: Any


class Convolution(Pooling, total=False):
    """The attributes of a convolution."""

    dilations: Any
    group: int


def microsoft(op_type: str) -> Callable[[Body], Body]:
    """Declare a body: the builder and the inputs positional, attributes by keyword."""

    def register(body: Body) -> Body:
        bodies[op_type] = body
        return body

    return register


class Builder:
    """Makes nodes: `op.Softmax(x, axis=-1)` is the value that a new node gives.

    Inputs that are no values become constants: lists those of whole numbers.
    """

    def __init__(self, outputs: Sequence[bool], shared: Shared):
        self.outputs = outputs  #: whether each of the operator's outputs is asked for
        self.shared = shared
        self.nodes: list[ir.Node] = []
        self.notes: list[str] = []

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        def make(*inputs: Any, **attributes: Any) -> ir.Value:
            return self.make("", op_type, inputs, attributes)[0]

        return make

    def make(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[Any],
        attributes: dict[str, Any],
        outputs: int = 1,
    ) -> Sequence[ir.Value]:
        """The values of a new node; attributes that are None are left out."""
        given = [None if x is None else self.value(x) for x in inputs]
        while given and given[-1] is None:
            given.pop()
        written = {k: v for k, v in attributes.items() if v is not None}
        node = ir.node(op_type, given, written, domain=domain, num_outputs=outputs)
        node.version = VERSION if not domain else None
        self.nodes.append(node)
        if op_type in _ALIKE and given and given[0] is not None and given[0].dtype:
            for output in node.outputs:
                output.dtype = given[0].dtype
        return node.outputs

    def value(self, x: Any) -> ir.Value:
        """A value as it is, a number or list as a Constant."""
        if isinstance(x, ir.Value):
            return x
        array = np.asarray(x, np.int64) if isinstance(x, list | int) else x
        tensor: Any = ir.tensor(array) if isinstance(array, np.ndarray) else array
        node = ir.node("Constant", [], {"value": tensor})
        self.nodes.append(node)
        result = node.outputs[0]
        result.dtype, result.shape = tensor.dtype, ir.Shape(tensor.shape)
        return result

    def number(self, number: float, like: ir.Value) -> ir.Value:
        """A number of the same type as `like`."""
        if like.dtype is None:
            made: ir.Value = self.CastLike(np.array(number, np.float32), like)
            return made
        return self.value(np.array(number, like.dtype.numpy()))

    def length(self, x: Any, axis: int) -> ir.Value:
        """The size of an axis, as a number of the run."""
        made: ir.Value = self.Squeeze(self.Shape(x, start=axis, end=axis + 1), [0])
        return made

    def places(self, x: Any, axis: int) -> ir.Value:
        """0, 1, ... for the places along an axis."""
        made: ir.Value = self.Range(0, self.length(x, axis), 1)
        return made

    def lowest(self, like: ir.Value) -> ir.Value:
        """The lowest finite number of the type of `like`; float32's if it is unknown.

        A mask of it keeps rows finite that see nothing.
        """
        dtype = ir.DataType.FLOAT if like.dtype is None else like.dtype
        return self.number(float(dtype.min), like)

    def dequantized(self, x: Quantized) -> ir.Value:
        """The real numbers of a quantized tensor."""
        made: ir.Value = self.DequantizeLinear(*x)
        return made

    def quantized(self, y: Any, scale: Scale) -> ir.Value:
        """The codes of real numbers."""
        made: ir.Value = self.QuantizeLinear(y, *scale)
        return made

    def split(self, x: Any, axis: int, sizes: Sequence[int]) -> Sequence[ir.Value]:
        """Parts of x of these sizes along an axis."""
        given = (x, list(sizes))
        parts = self.make("", "Split", given, {"axis": axis}, len(sizes))
        for part, size in zip(parts, sizes, strict=True):
            if x.shape is not None:
                part.shape = ir.Shape(x.shape)
                part.shape[axis] = size
        return parts


def float32(number: float) -> np.ndarray:
    """A number as a constant of this type, whatever it is beside."""
    return np.array(number, np.float32)


def rank(x: ir.Value | None) -> int:
    """How many axes x has. Raises Unreadable when nothing tells."""
    if x is None or x.shape is None:
        name = "an input" if x is None else repr(x.name)
        raise Unreadable(f"expected {name} with a known number of axes")
    return len(x.shape)


def size(x: ir.Value | None, axis: int) -> int | None:
    """A dimension where it is a number."""
    if x is None or x.shape is None or len(x.shape) <= axis % (len(x.shape) or 1):
        return None
    found = x.shape[axis]
    return found if isinstance(found, int) else None


def known(x: ir.Value | None, axis: int, what: str) -> int:
    """A dimension. Raises Unreadable when it is no number."""
    found = size(x, axis)
    if found is None:
        raise Unreadable(f"expected {what} of a known size")
    return found


def array_of(x: ir.Value | None, what: str) -> np.ndarray:
    """The numbers of an initializer. Raises Unreadable for a computed value."""
    tensor = None if x is None else x.const_value
    if tensor is None or x is None or x.is_graph_input():
        raise Unreadable(f"expected {what} in the file, got one that is computed")
    return tensor.numpy()


def body_of(
    node: ir.Node, opset: int, shared: Shared
) -> tuple[list[ir.Node], list[ir.Value | None], list[str]]:
    """New nodes, the value for each output (None: nobody reads it), and notes.

    Raises Unreadable when the operator, or this use of it, has no body.
    """
    body = bodies.get(node.op_type)
    if body is None:
        raise Unreadable(_no_body(node))
    attributes = _attributes(node, body)
    inputs = _grouped(node, body)
    return written(node, opset, shared, lambda op: body(op, *inputs, **attributes))


def _no_body(node: ir.Node) -> str:
    """What to do about an operator that is not known here."""
    graphs = [a.name for a in node.attributes.values() if isinstance(a.value, ir.Graph)]
    if not graphs:
        return "onnxruntime's own; convert the file before its optimisation"
    reason = node.meta.get(WHY_NOT)
    return (f"{reason}; " if reason else "") + (
        f"it calls the networks in its attributes {', '.join(map(repr, graphs))}: save "
        "each as a model of its own, as docs/troubleshooting.md shows, and generate "
        "from that"
    )


def written(
    node: ir.Node, opset: int, shared: Shared, body: Callable[[Builder], Any]
) -> tuple[list[ir.Node], list[ir.Value | None], list[str]]:
    """What a body of the node makes, as `body_of` gives it."""
    asked = [bool(v.uses()) or v.is_graph_output() for v in node.outputs]
    op = Builder(asked, shared)
    made = body(op)
    results = [*made] if isinstance(made, tuple) else [made]
    results += [None] * (len(asked) - len(results))
    del results[len(asked) :]
    for place, wanted in enumerate(asked):
        if wanted and results[place] is None:
            raise Unreadable(f"its output {place} is not made")
        if results[place] is not None:
            results[place] = _own(op, results, place)
    for new in op.nodes:
        new.version = None if new.version == opset else new.version
    return op.nodes, results, op.notes


def _own(op: Builder, results: list[Any], place: int) -> Any:
    """A result that a node of the body makes, and only for this output."""
    value = results[place]
    if value.producer() in op.nodes and value not in results[:place]:
        return value
    return op.Identity(value)


def attributes_of(body: Body) -> set[str]:
    """The attributes that a body declares."""
    known = set[str]()
    for each in inspect.signature(body).parameters.values():
        if each.kind is each.KEYWORD_ONLY:
            known.add(each.name)
        elif each.kind is each.VAR_KEYWORD:
            (several,) = get_args(get_type_hints(body)[each.name])
            known |= several.__optional_keys__
    return known


@functools.cache
def _parameters(body: Body) -> list[tuple[str, Any]]:
    """The names and types of the parameters that take inputs."""
    hints = get_type_hints(body)
    found = [*inspect.signature(body).parameters.values()][1:]
    return [(p.name, hints[p.name]) for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]


def inputs_of(body: Body) -> list[str]:
    """The inputs that a body declares, each of a group by its name."""
    ends = [(name, _GROUPS.get(kind, ("",))) for name, kind in _parameters(body)]
    return [name + end for name, own in ends for end in own]


def _grouped(node: ir.Node, body: Body) -> list[Any]:
    """The node's inputs as the arguments that the body takes."""
    rest = iter(node.inputs)
    arguments: list[Any] = []
    for _, kind in _parameters(body):
        own = [*islice(rest, len(_GROUPS.get(kind, " ")))]
        if own:
            arguments.append(kind(*own) if kind in _GROUPS else own[0])
    return [*arguments, *rest]


def _attributes(node: ir.Node, body: Body) -> dict[str, Any]:
    parameters = inspect.signature(body).parameters.values()
    known = attributes_of(body)
    count = len(inputs_of(body))
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for name in node.attributes:
        if name not in known:
            raise Unreadable(f"expected no attribute {name}")
    extra = node.inputs[count:]
    if not many and any(value is not None for value in extra):
        raise Unreadable(f"expected {count} inputs at most")
    if not many and extra:
        node.resize_inputs(count)
    return {name: held.value for name, held in node.attributes.items()}
