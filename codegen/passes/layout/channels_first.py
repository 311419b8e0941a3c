"""Remove the transposes that TensorFlow's exporters put around channels-last operators.

Nodes between Transposes that do not depend on the order of axes are a region with
channels last. It is written for channels first where that needs fewer Transposes, or
as many, and these stand at the model's inputs and outputs. Where all that is behind a
Transpose is turned back, any order of axes will do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops.shapes.dims import declared
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.layout.channel_axes import (
    ARITHMETIC,
    Order,
    first,
    inverse,
    keeps_axes,
    last,
    moved,
    rewrite,
)


@dataclass
class Region:
    """A connected region of values with channels last, and its borders.

    sources: made by a Transpose. foreign: made by what must have channels last.
    needed: read by what must have channels last. ends: turned to channels first.
    """

    order: Order
    values: dict[ir.Value, None] = field(default_factory=dict)
    nodes: dict[ir.Node, None] = field(default_factory=dict)
    sources: dict[ir.Value, ir.Value] = field(default_factory=dict)
    foreign: dict[ir.Value, None] = field(default_factory=dict)
    needed: dict[ir.Value, None] = field(default_factory=dict)
    ends: dict[ir.Node, ir.Value] = field(default_factory=dict)

    def is_better(self) -> bool:
        """Whether fewer Transposes remain, or more of them are at the very ends."""
        given = self.needed.keys() - self.sources.keys() - self.foreign.keys()
        added = [*self.foreign, *given]
        kept = [v for v in self.sources if v in self.needed]
        saved = len(self.sources) - len(kept) + len(self.ends) - len(added)
        if saved or not self.nodes:
            return saved > 0
        outer = all(v.is_graph_input() or v.is_graph_output() for v in added)
        inner = any(v not in self.needed for v in self.sources) or bool(self.ends)
        return outer and inner


def channels_first(model: ir.Model, account: Account) -> bool:
    """Write regions with channels last for channels first, where that is shorter."""
    changed, seen = False, set[ir.Value]()
    for node in g.all_nodes(model):
        if node.graph is None:
            continue
        if (apart := _apart(node)) is not None:
            _Move(model, apart).run()
            account.did("axes that are turned and turned back", g.label(node))
            changed = True
            continue
        seed = _seed(node)
        if seed is None or seed in seen:
            continue
        region = _region(seed, node)
        seen.update(region.values)
        if region.is_better():
            _Move(model, region).run()
            account.did("region with channels last", g.label(node))
            changed = True
    return changed


def _seed(node: ir.Node) -> ir.Value | None:
    """The side of a Transpose of channels where they are last, beside a layer."""
    order = _order(node)
    if order is None or len(order) < 3:
        return None
    if order == last(len(order)) and _is_layer(g.maker_of(node.inputs[0])):
        return node.outputs[0]
    users = [user for user, _ in node.outputs[0].uses()]
    if order == first(len(order)) and any(map(_is_layer, users)):
        return node.inputs[0]
    return None


def _order(node: ir.Node | None) -> Order | None:
    if node is None or node.op_type != "Transpose" or node.domain:
        return None
    perm = node.attributes.get_ints("perm")
    return None if perm is None else list(perm)


_LAYERS = ("Conv", "Pool", "BatchNorm", "InstanceNorm", "Resize", "DepthToSpace")


def _is_layer(node: ir.Node | None) -> bool:
    """Whether the operator wants channels on axis 1."""
    return node is not None and any(word in node.op_type for word in _LAYERS)


# --- what belongs together ---


def _region(seed: ir.Value, node: ir.Node) -> Region:
    order = g.unwrap(_order(node))
    region = Region(last(len(order)))
    graph = node.graph
    waiting = [seed]
    while waiting:
        value = waiting.pop()
        if value in region.values:
            continue
        region.values[value] = None
        waiting += _made(region, value)
        if value.is_graph_output():
            region.needed[value] = None
        for user, _ in value.uses():
            waiting += _read(region, value, user, graph)
    return region


def _made(region: Region, value: ir.Value) -> list[ir.Value]:
    """Where the value comes from: more values with channels last."""
    maker = value.producer()
    if maker is not None and _order(maker) == region.order:
        source = g.unwrap(maker.inputs[0])
        region.sources[value] = source
        return []
    if maker in region.nodes:
        return []
    more = None if maker is None else _joined(region, maker)
    if more is None or (maker is not None and not keeps_axes(maker)):
        region.foreign[value] = None
        return []
    return more


def _read(
    region: Region, value: ir.Value, user: ir.Node, graph: object
) -> list[ir.Value]:
    """The outputs of the value's readers: further values with channels last."""
    if user in region.nodes or user in region.ends:
        return []
    order = _order(user)
    if order is not None and user.graph is graph and order == first(len(order)):
        region.ends[user] = value
        return []
    more = _joined(region, user) if user.graph is graph else None
    if more is None:
        region.needed[value] = None
        return []
    return more


def _joined(region: Region, node: ir.Node) -> list[ir.Value] | None:
    """The node's values, if it can be written for channels first; it joins then."""
    places, rank = moved(node), len(region.order)
    if places is None:
        return None
    values: list[ir.Value] = []
    for place in places:
        value = node.inputs[place]
        dims = declared(value)
        if value is None or dims is None or len(dims) > rank:
            return None
        if g.constant(value) is None and len(dims) == rank:
            values.append(value)
        elif g.constant(value) is None and dims:
            return None
    if not values:
        return None
    region.nodes[node] = None
    made = node.outputs if node.op_type == "Split" else node.outputs[:1]
    return [*values, *made] if keeps_axes(node) else values


def _apart(node: ir.Node) -> Region | None:
    """Arithmetic between a Transpose and inverse Transposes, which alone read it."""
    order = _order(node)
    if order is None or node.inputs[0] is None:
        return None
    back, read = inverse(order), list[ir.Value]()
    region, waiting = Region(order), [node.outputs[0]]
    region.sources[node.outputs[0]] = node.inputs[0]
    while waiting:
        value = waiting.pop()
        region.values[value] = None
        if value.is_graph_output() or not value.uses():
            return None
        for user, _ in value.uses():
            if _order(user) == back and user.graph is node.graph:
                region.ends[user] = value
            elif user.op_type not in ARITHMETIC or user.graph is not node.graph:
                return None
            elif user not in region.nodes:
                joined = _joined(region, user)
                if joined is None:
                    return None
                read += joined
                waiting.append(user.outputs[0])
    whole = all(value in region.values for value in read)
    return region if region.nodes and whole else None


# --- how it is moved ---


class _Move:
    """Writes a region for channels first; its values keep their names."""

    def __init__(self, model: ir.Model, region: Region):
        self.model = model
        self.region = region
        self.back = inverse(region.order)
        self.inner: dict[ir.Value, ir.Value] = dict(region.sources)

    def run(self) -> None:
        region = self.region
        for value in region.foreign:
            self.inner[value] = self._turned(value, self.back)
        moving = [value for value in region.values if value not in self.inner]
        inside = {*region.nodes, *region.ends}
        outside = {
            value: [(n, i) for n, i in value.uses() if n not in inside]
            for value in moving
        }
        results = {value for value in moving if value.is_graph_output()}
        for node in region.nodes:
            self._rewrite(node)
        for node, value in region.ends.items():
            self._end(node, self.inner.get(value, value))
        for value, uses in outside.items():
            if value.shape is not None:
                dims = list(value.shape)
                value.shape = ir.Shape([dims[axis] for axis in self.back])
            if value in results or uses:
                self._give(value, uses)
        for value in region.sources:
            maker = value.producer()
            if maker is not None and not value.uses() and not value.is_graph_output():
                g.owner(maker).remove(maker, safe=True)

    def _rewrite(self, node: ir.Node) -> None:
        for place in moved(node) or []:
            value = node.inputs[place]
            if value is None:
                continue
            if g.constant(value) is not None:
                self.inner.setdefault(value, self._constant(value, node))
            node.replace_input_with(place, self.inner.get(value, value))
        rewrite(self.model, node, self.region.order)

    def _constant(self, value: ir.Value, node: ir.Node) -> ir.Value:
        """A constant that is spread over values with channels last."""
        dims = g.static_dims(value) or ()
        if all(size == 1 for size in dims):
            return value
        wide = (*[1] * (len(self.back) - len(dims)), *dims)
        shape = [wide[axis] for axis in self.back]
        vector = sum(size != 1 for size in dims) == 1
        name = f"{value.name}_shape"
        to = g.new_constant(self.model, name, shape if vector else wide)
        made = ir.Node("", "Reshape", [value, to])
        if not vector:
            g.owner(node).insert_before(node, made)
            made.outputs[0].type = value.type
            made = self._transpose(made.outputs[0], self.back)
        g.owner(node).insert_before(node, made)
        made.outputs[0].name = value.name  # a weight, not counted
        made.outputs[0].type = value.type
        made.outputs[0].shape = ir.Shape(shape)
        return made.outputs[0]

    def _transpose(self, value: ir.Value, order: Order) -> ir.Node:
        made = ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", order)])
        made.outputs[0].type = value.type
        return made

    def _turned(self, value: ir.Value, order: Order) -> ir.Value:
        """The value behind a new Transpose, as early as it can be."""
        made = self._transpose(value, order)
        maker = value.producer()
        if value.shape is not None:
            dims = list(value.shape)
            made.outputs[0].shape = ir.Shape([dims[axis] for axis in order])
        if maker is not None:
            made.metadata_props.update(maker.metadata_props)
            g.owner(maker).insert_after(maker, made)
        else:
            reader = next(user for user, _ in value.uses())
            graph = g.owner(reader)
            graph.insert_before(graph[0], made)
        return made.outputs[0]

    def _end(self, node: ir.Node, value: ir.Value) -> None:
        """A redundant Transpose to channels first."""
        if not g.forward(node, value):
            g.substitute(node, [ir.Node("", "Identity", [value], name=node.name)])

    def _give(self, value: ir.Value, uses: list[tuple[ir.Node, int]]) -> None:
        """Channels last, for those who need them."""
        name, graph = value.name, g.unwrap(value.producer())
        outer = self._turned(value, self.region.order)
        for user, place in uses:
            user.replace_input_with(place, outer)
        if value.is_graph_output():
            outputs = g.owner(graph).outputs
            for place, output in enumerate(outputs):
                if output is value:
                    outputs[place] = outer
            value.name = f"{name}_first"
            outer.name = name
