"""Symbolic shape propagation from the inputs' named sizes.

Files leave out most shapes, and what they say is not always so: an example's length,
another name for the same size. What is worked out here takes its place, so that a
reshape to what a tensor is already can be seen to be none, and the length of an axis is
one name throughout. Numbers that Shape, Gather and Concat compute become constants.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.errors import ReadError
from burnish.codegen.ops import shapes_of
from burnish.codegen.ops.shapes.dims import Context, Dims, Shapes, Sizes, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.shapes.rounds import kept_shapes, results_of
from burnish.codegen.program import (
    Attribute,
    Constant,
    Expression,
    Host,
    Literal,
    Subscript,
    Value,
)
from burnish.codegen.symbolic import host
from burnish.codegen.symbolic.sizes import MOST_DIMS, Size, parse, size_of, truth_of

_LARGEST = 64
_SHORT = 128  # bytes of a name that is repeated for each axis
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL)
_COUNTED = re.compile(r"(s|u|unk__)\d+", re.ASCII)


def propagate_sizes(
    model: ir.Model, account: Account, *, is_rounded: bool = False
) -> bool:
    """Write every known shape; replace values that are known constants.

    is_rounded: strides make rounded quotients of open sizes.
    """
    return _Follower(model, account, is_rounded).graph(model.graph)


class _Follower:
    def __init__(self, model: ir.Model, account: Account, is_rounded: bool):
        self.model = model
        self.context = Context(self._sizes, is_rounded=is_rounded)
        self.account = account
        self.numbers: dict[ir.Value, Host] = {}
        self.names: dict[str, str] = {}
        for value in model.graph.inputs:
            _name_sizes(value, self.names)

    def graph(self, graph: ir.Graph) -> bool:
        """Propagate through nodes and their branches, which read outer values."""
        changed = False
        for node in list(graph):
            if node.op_type == "If" and node.domain == "":
                for name in ("then_branch", "else_branch"):
                    changed |= self.graph(node.attributes[name].as_graph())
            elif node.op_type == "Loop" and node.domain == "":
                changed |= self._rounds(node)
            changed |= self.node(node)
        return changed

    def _rounds(self, node: ir.Node) -> bool:
        """Propagate through a loop's body from the shapes that stay the same."""
        for value, dims in kept_shapes(node, self.context).items():
            if value.shape is not None:  # what a file says may hold in one round alone
                value.shape = ir.Shape([None] * len(value.shape))
            _write(value, dims, self.names)
        body = node.attributes["body"].as_graph()
        said = [value.shape for value in body.outputs]
        changed = self.graph(body)
        for value, shape in zip(body.outputs, said, strict=True):
            value.shape = _with_numbers(value.shape, shape)
        return changed

    def node(self, node: ir.Node) -> bool:
        changed = self._shape(node)
        if node.op_type == "Reshape" and node.domain == "":
            changed |= self._open_size(node)
        for output, numbers in zip(node.outputs, self._evaluated(node), strict=False):
            changed |= self._numbers(node, output, numbers)
        return changed

    def _numbers(self, node: ir.Node, output: ir.Value, numbers: Host) -> bool:
        """Keep a result's numbers; True if it is a constant from now on."""
        self.numbers[output] = numbers
        if not all(isinstance(n, Literal) for n in numbers.array.ravel()):
            return False
        if output.is_graph_output() or not output.uses() or output.dtype is None:
            return False
        flat = [n.value for n in numbers.array.ravel()]
        array = np.array(flat, output.dtype.numpy()).reshape(numbers.array.shape)
        constant = g.initializer(self.model, output, ir.tensor(array), trains=False)
        ir.convenience.replace_all_uses_with(output, constant)
        self.account.did("numbers of known sizes", g.label(node))
        return True

    # --- shapes ---

    def _shape(self, node: ir.Node) -> bool:
        """Write the shapes of a node's outputs; True if a number became known."""
        rule = shapes_of(node.domain, node.op_type)
        found: Shapes = []
        if node.op_type == "Loop" and node.domain == "":
            found = results_of(node, self.context)
        elif rule is not None:
            try:
                found = rule(node, [declared(v) for v in node.inputs], self.context)
            except (LookupError, ValueError, ArithmeticError):
                found = []  # shapes that contradict the operator say nothing
        changed = False
        for i, output in enumerate(node.outputs):
            if node.op_type in _FREE and isinstance(output.type, ir.TensorType | None):
                output.shape = _without_names(output.shape)
            dims = found[i] if i < len(found) else None
            if dims is not None and len(dims) > MOST_DIMS:
                raise ReadError(
                    f"node {g.label(node)!r} ({node.op_type}): expected a result of at "
                    f"most {MOST_DIMS} dimensions, got {len(dims)}"
                )
            if _write(output, dims, self.names):
                self.account.did("shape in numbers", g.label(node))
                changed = True
        return changed

    def _sizes(self, value: ir.Value | None) -> Sizes | None:
        """The numbers in a small tensor of integers; None for one not known."""
        numbers = self._known(value)
        if numbers is None:
            return None
        return [size_of(n, _leaf) for n in numbers.array.ravel()]

    def _open_size(self, node: ir.Node) -> bool:
        """Write the only symbolic size of a Reshape as -1."""
        target, output = node.inputs[1], node.outputs[0]
        sizes = self._sizes(target)
        if sizes is None or target is None or g.constant(target) is not None:
            return False
        numbers = [None if size is None else size.value for size in sizes]
        known = [n for n in numbers if n is not None]
        if len(known) != len(numbers) - 1 or any(n <= 0 for n in known):
            return False
        array = np.array([-1 if n is None else n for n in numbers], np.int64)
        like = ir.Value(name=f"{output.name}_shape")
        constant = g.initializer(self.model, like, ir.tensor(array), trains=False)
        node.replace_input_with(1, constant)
        self.account.did("size left to Reshape", g.label(node))
        return True

    # --- numbers ---

    def _known(self, value: ir.Value | None) -> Host | None:
        if value is None:
            return None
        if value in self.numbers:
            return self.numbers[value]
        tensor = g.constant(value)
        if tensor is None or tensor.dtype not in _INTEGERS or tensor.size > _LARGEST:
            return None
        return host.host(tensor.numpy().tolist(), str(tensor.dtype).lower())

    def _evaluated(self, node: ir.Node) -> list[Host]:
        """The results of a node that computes on sizes; none where it does not."""
        if node.domain != "" or node.op_type not in host.OPERATORS:
            return []
        if any(output.dtype not in _INTEGERS for output in node.outputs):
            return []
        if node.op_type in ("Shape", "Size"):
            inputs: list[Expression | None] = [_tensor(node.inputs[0])]
        else:
            known = [self._known(v) for v in node.inputs]
            if any(k is None and v for k, v in zip(known, node.inputs, strict=True)):
                return []
            inputs = list(known)
        attributes = {}
        for held in node.attributes.values():
            if held.type == ir.AttributeType.GRAPH:
                return []
            is_tensor = held.type == ir.AttributeType.TENSOR
            given = (
                Constant(np.asarray(held.value.numpy())) if is_tensor else held.value
            )
            attributes[held.name] = given
        made = host.evaluate(node.op_type, inputs, attributes, len(node.outputs))
        if any(numbers.array.size > _LARGEST for numbers in made):
            return []
        simplest = np.frompyfunc(_simplest, 1, 1)
        return [
            Host(np.asarray(simplest(numbers.array), object), numbers.dtype)
            for numbers in made
        ]


def _tensor(value: ir.Value | None) -> Value | None:
    """A tensor as host arithmetic sees it: something with a shape."""
    if value is None:
        return None
    dims = declared(value)
    shape = None if dims is None else tuple(d if d is None else d.dim for d in dims)
    return Value(value.name or "", None, shape)


def _simplest(number: Expression) -> Expression:
    truth = truth_of(number, _leaf)
    if truth is not None:
        return Literal(truth)
    size = size_of(number, _leaf)
    if size is None:
        return number
    if size.value is not None:
        return Literal(size.value)
    return Value(str(size), "int64", (), host=True, nonnegative=size.nonnegative)


def _leaf(expression: Expression) -> Size | None:
    match expression:
        case Value(host=True, hint=text):
            return parse(text)
        case Subscript(
            target=Attribute(target=target, name="shape"), keys=(Literal(value=axis),)
        ):
            dim = target.shape[axis] if target.shape else None
            return None if dim is None else parse(dim)
    return None


# --- names ---

_FREE = frozenset(("Expand", "Reshape"))
"""Where numbers that only the running model knows may make any shape of any other."""


def _without_names(shape: ir.Shape | None) -> ir.Shape | None:
    """A shape without its names: a file's names of sizes prove nothing."""
    if shape is None:
        return None
    return ir.Shape([d if isinstance(d, int) or _is_ours(d) else None for d in shape])


def _with_numbers(ours: ir.Shape | None, said: ir.Shape | None) -> ir.Shape | None:
    """Our shape, with numbers that the file says where we have no name."""
    if ours is None or said is None or len(ours) != len(said):
        return ours
    return ir.Shape(
        b if isinstance(b, int) and not isinstance(a, int) and _is_nobodys(a) else a
        for a, b in zip(ours, said, strict=True)
    )


def _is_nobodys(dim: ir.SymbolicDim) -> bool:
    return _is_ours(dim) or _COUNTED.fullmatch(dim.value or "") is not None


def _is_ours(dim: ir.SymbolicDim) -> bool:
    return dim.value is not None and dim.value.startswith("?")


_ROLES = {
    1: ("batch",),
    2: ("batch", "time"),
    3: ("batch", "time", "features"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}
"""Usual names of an input's axes, in place of names that an exporter numbered."""


def _name_sizes(value: ir.Value, names: dict[str, str]) -> None:
    """Give every size of an input a name, so that it can be followed.

    names: takes the roles that stand for counted names.
    """
    if value.shape is None:
        return
    dims: list[int | str] = []
    roles = _ROLES.get(len(value.shape), ())
    for axis, dim in enumerate(value.shape):
        size = dim if isinstance(dim, int) else dim.value
        if isinstance(size, str) and _COUNTED.fullmatch(size):
            taken = axis >= len(roles) or roles[axis] in names.values()
            size = names.setdefault(size, f"?{size}" if taken else roles[axis])
        dims.append(_nameless(value, axis) if size is None else size)
    value.shape = ir.Shape(dims)


def _nameless(value: ir.Value, axis: int) -> str:
    """A name that is no Python name, so that no reader will see it."""
    name = (value.name or "").encode()
    digest = name if len(name) <= _SHORT else hashlib.sha256(name).digest()
    return f"?{digest.hex()}_{axis}"


def _write(value: ir.Value, dims: Dims | None, names: dict[str, str]) -> bool:
    """Write a shape; unknown axes keep the file's size or name."""
    if not isinstance(value.type, ir.TensorType | None):
        return False
    if dims is None and value.shape is None:
        return False
    known = list(value.shape) if value.shape is not None else []
    if dims is None:
        dims = [None] * len(known)
    fits = len(known) == len(dims)
    made: list[int | str] = []
    for axis, size in enumerate(dims):
        noted = known[axis] if fits else None
        declared = noted if isinstance(noted, int | None) else noted.value
        if size is None and declared is not None:
            size = parse(declared).renamed(names)
        made.append(_nameless(value, axis) if size is None else size.dim)
    before = [d if isinstance(d, int) else d.value for d in known]
    if made == before and value.shape is not None:
        return False
    value.shape = ir.Shape(made)
    return any(
        isinstance(m, int) and m != b for m, b in zip(made, before, strict=False)
    )
