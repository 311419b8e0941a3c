"""Queries on the Graph that several passes share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.weights import constants

#: Operators whose result changes from run to run.
RANDOM = having(Trait.RANDOM)
_GRAPH, _GRAPHS = ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS
_MOST_INTEGERS = 64
"""Axes, shapes and bounds have fewer; a longer constant is data, and is not listed."""


_T = TypeVar("_T")


def unwrap(value: _T | None) -> _T:
    """The value of an Optional that an earlier check has found to be there."""
    assert value is not None
    return value


def all_nodes(model: ir.Model) -> list[ir.Node]:
    """Every node, those of bodies included, as a list that may change underneath."""
    nodes: list[ir.Node] = []

    def visit(graph: ir.Graph) -> None:
        own = list(graph)
        nodes.extend(own)
        for node in own:
            if node.attributes.data:  # most have none, and every pass asks
                for body in bodies(node):
                    visit(body)

    visit(model.graph)
    return nodes


def nodes_of(model: ir.Model, *kinds: str) -> Iterator[ir.Node]:
    """ONNX's nodes of these kinds, of bodies too, that are still in a graph."""
    for node in all_nodes(model):
        if node.op_type in kinds and not node.domain and node.graph is not None:
            yield node


Rewrites = Mapping[str, Callable[[ir.Model, ir.Node], bool]]
"""Functions that change a node and say whether they did, by what the account says."""


def rewrite_nodes(
    model: ir.Model, account: Account, rewrites: Rewrites, *kinds: str
) -> bool:
    """Try rewrites in turn at every node of these kinds; True if any did something."""
    changed = False
    for node in nodes_of(model, *kinds):
        for what, rewrite in rewrites.items():
            if node.graph is not None and rewrite(model, node):
                account.did(what, label(node))
                changed = True
    return changed


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs in a node's attributes."""
    for held in node.attributes.data.values():
        kind = held.type
        if kind == _GRAPH:
            yield held.as_graph()
        elif kind == _GRAPHS:
            yield from held.as_graphs()


def label(node: ir.Node) -> str:
    """A node's name in messages."""
    return node.name or next((v.name for v in node.outputs if v.name), node.op_type)


def owner(node: ir.Node) -> ir.Graph:
    """The graph that the node is in."""
    graph = node.graph
    assert isinstance(graph, ir.Graph), f"node {node.name!r} is in no graph"
    return graph


def constant(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor of an initializer that no caller can replace, or None."""
    if value is None or value.is_graph_input() or not value.is_initializer():
        return None
    return value.const_value


def scalar(value: ir.Value | None) -> float | None:
    """The number in a constant of one numeric element, or None."""
    tensor = constant(value)
    if tensor is None or tensor.size != 1 or tensor.dtype == ir.DataType.STRING:
        return None
    number = tensor.numpy().reshape(-1)[0]
    return None if np.iscomplexobj(number) else float(number)


def integers(value: ir.Value | None) -> list[int] | None:
    """The elements of a constant of integers, or None."""
    tensor = constant(value)
    if tensor is None or not tensor.dtype.is_integer() or tensor.size > _MOST_INTEGERS:
        return None
    return [int(i) for i in tensor.numpy().reshape(-1)]


def static_dims(value: ir.Value | None) -> tuple[int, ...] | None:
    """The shape, when every dimension is a number."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(value.shape.numpy())


def proven_equal(a: ir.Value, b: ir.Value) -> bool:
    """Whether two values must have the same shape: the same numbers and names."""
    if a.shape is None or b.shape is None:
        return False
    known = all(isinstance(d, int) or d.value is not None for d in a.shape)
    return known and a.shape == b.shape and 0 not in list(a.shape)


def attribute(node: ir.Node, name: str, default: object) -> object:
    """The attribute's value, or the specification's default."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def version(model: ir.Model, node: ir.Node) -> int:
    """The opset that the node means: its own, or the model's."""
    return node.version or model.opset_imports.get("", 28)


def maker_of(value: ir.Value | None, *kinds: str) -> ir.Node | None:
    """The node that makes a value; with `kinds`, if it is one of these of ONNX's."""
    maker = None if value is None else value.producer()
    if maker is None or not kinds:
        return maker
    return maker if maker.op_type in kinds and not maker.domain else None


def made_for(reader: ir.Node, value: ir.Value | None) -> ir.Node | None:
    """The node of one output, in the reader's graph, that makes a value for one use."""
    maker = None if value is None else value.producer()
    if maker is None or value is None or len(maker.outputs) != 1:
        return None
    alone = len(value.uses()) == 1 and not value.is_graph_output()
    return maker if alone and maker.graph is reader.graph else None


def forward(node: ir.Node, value: ir.Value) -> bool:
    """Let everybody who reads `node` read `value` instead; False if names forbid it.

    A graph output keeps its name, so it can only be forwarded to a value that a node
    of the same graph makes and that is not an output itself.
    """
    output = node.outputs[0]
    if output.is_graph_output():
        producer = value.producer()
        if producer is None or producer.graph is not node.graph:
            return False
        if value.is_graph_output():
            return False
    name, wanted = output.name, output.is_graph_output()
    if value.shape is None:
        value.shape = output.shape
    if value.type is None:
        value.type = output.type
    ir.convenience.replace_all_uses_with(output, value, replace_graph_outputs=True)
    owner(node).remove(node, safe=True)
    if wanted:
        value.name = name
    return True


Held = ir.TensorProtocol | np.ndarray | Sequence[int]
"""A tensor, an array, or int64 numbers."""


def _tensor(held: Held) -> ir.TensorProtocol:
    if not isinstance(held, ir.TensorProtocol | np.ndarray):
        held = np.array(held, np.int64)
    return ir.tensor(held) if isinstance(held, np.ndarray) else held


def constant_node(held: Held) -> ir.Node:
    """A Constant node."""
    return ir.Node("", "Constant", [], [ir.AttrTensor("value", _tensor(held))])


def named_like(made: ir.Node, like: ir.Node) -> ir.Node:
    """A node with the name and the scope of another one."""
    made.name = like.name
    made.metadata_props.update(like.metadata_props)
    return made


def before(node: ir.Node, *made: ir.Node) -> None:
    """Insert nodes before another one, with its name and scope."""
    owner(node).insert_before(node, [named_like(each, node) for each in made])


def substitute(
    node: ir.Node, made: Sequence[ir.Node], results: Sequence[ir.Value] | None = None
) -> None:
    """Put nodes in the place of one; the results of its own are the last one's."""
    results = made[-1].outputs if results is None else results
    ir.convenience.replace_nodes_and_values(
        owner(node), node, [node], made, node.outputs, results
    )


def weight_node(
    like: str | None, dtype: ir.DataType, shape: Sequence[int], read: Callable[[], Any]
) -> ir.Node:
    """A Constant node of a trained weight, which is computed on first use."""
    held = ir.LazyTensor(read, dtype, ir.Shape(shape), name=like)
    node = constant_node(held)
    node.outputs[0].name = like
    constants.mark_weight(node)
    return node


def view_nodes(
    op_type: str, value: ir.Value, numbers: Sequence[int], version: int | None = 13
) -> list[ir.Node]:
    """A Reshape, Squeeze or Unsqueeze, behind the Constant of its sizes or axes."""
    given = constant_node(numbers)
    inputs = [value, given.outputs[0]]
    return [given, ir.Node("", op_type, inputs, version=version)]


def reshape_nodes(value: ir.Value, sizes: Sequence[int]) -> list[ir.Node]:
    """A Reshape, behind the Constant of its sizes."""
    return view_nodes("Reshape", value, sizes, version=None)


def initializer(
    model: ir.Model,
    like: ir.Value,
    tensor: ir.TensorProtocol,
    trains: bool,
    replaced: Iterable[ir.Node] = (),
) -> ir.Value:
    """A new initializer of the main graph with a name of its own.

    trains: it holds a weight of the file; else it is marked as a constant. replaced:
    nodes that go; what they alone read hands on its name.
    """
    taken = model.graph.initializers
    base, name, count = like.name or "constant", like.name or "constant", 0
    before = taken.get(name)
    readers = {user for user, _ in before.uses()} if before is not None else set()
    if readers and readers <= {like.producer(), *replaced}:
        del taken[name]  # the same weight, written in another way
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    tensor.name = name
    value = ir.Value(
        name=name,
        type=ir.TensorType(tensor.dtype),
        shape=ir.Shape(tensor.shape.numpy()),
        const_value=tensor,
        metadata_props=dict(like.metadata_props),
    )
    if not trains:
        constants.mark(value)
    model.graph.register_initializer(value)
    return value


def new_constant(model: ir.Model, name: str, held: Held) -> ir.Value:
    """A new initializer that no author named."""
    return initializer(model, ir.Value(name=name), _tensor(held), trains=False)


def starts_at_zero(node: ir.Node) -> bool:
    """Whether a Slice starts at 0 on every axis, in steps of 1."""
    starts = integers(node.inputs[1]) if len(node.inputs) > 2 else None
    steps = integers(node.inputs[4]) if len(node.inputs) > 4 else [1]
    return set(starts or [-1]) == {0} and set(steps or [0]) == {1}


def cut_of(node: ir.Node | None) -> tuple[ir.Value, int, int, int, int] | None:
    """What a Slice along one axis takes: of which value, start, end, axis and step."""
    if node is None or node.domain or node.op_type != "Slice" or len(node.inputs) < 4:
        return None
    whole, *given = node.inputs
    known = [n[0] for n in map(integers, given) if n is not None and len(n) == 1]
    if whole is None or len(known) != len(given):
        return None
    start, end, axis, step = (*known, 1)[:4]
    return whole, start, end, axis, step


def is_read_only_by(node: ir.Node, kind: str, *places: int) -> bool:
    """Whether only operators of a kind read the result, as one of these inputs."""
    result = node.outputs[0]
    fits = all(user.op_type == kind and at in places for user, at in result.uses())
    return bool(result.uses()) and fits and not result.is_graph_output()


def detach_inputs(nodes: Iterable[ir.Node | None]) -> None:
    """Remove the uses of nodes that are dropped."""
    for node in nodes:
        if node is not None:
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)


def order_of(node: ir.Node, rank: int) -> list[int] | None:
    """The axes in the order of a Transpose; None where it is for another rank.

    So it may be in a branch that runs only for other shapes.
    """
    perm = node.attributes.get("perm")
    order = list(range(rank))[::-1] if perm is None else list(perm.as_ints())
    return order if sorted(order) == list(range(rank)) else None


def behind(value: ir.Value, *kinds: str) -> ir.Value:
    """The value behind a chain of operators of these kinds, by their first inputs."""
    while (maker := maker_of(value, *kinds)) and maker.inputs[0] is not None:
        value = maker.inputs[0]
    return value


def behind_identities(value: ir.Value) -> ir.Value:
    """The value behind a chain of Identity nodes."""
    return behind(value, "Identity")


def elements(dims: tuple[int, ...]) -> int:
    """How many elements a shape holds."""
    return math.prod(dims)


def separate_names(model: ir.Model) -> None:
    """Rename nodes' outputs that are called as a weight is.

    onnx_ir calls unnamed values `val_0` and so on, as PyTorch's exporter calls weights,
    without looking at these.
    """
    weights = {name for graph in model.graphs() for name in graph.initializers}
    outputs = [value for node in all_nodes(model) for value in node.outputs]
    if not any(value.name in weights for value in outputs):
        return
    taken = weights | {value.name for value in outputs if value.name}
    for value in outputs:
        if value.name in weights:
            tries = (f"{value.name}_{number}" for number in itertools.count(1))
            value.name = next(name for name in tries if name not in taken)
            taken.add(value.name)
