"""Unmerge batch and heads that were merged for batched matrix products.

`torch.bmm` takes (batch * heads, time, size): authors merge two axes in front of it and
split them behind it. A product has any number of axes here, so nothing need be merged.
What makes the split tensor is written again with four axes, from where it was merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from burnish.codegen.account import Account
from burnish.codegen.ops import Trait, having
from burnish.codegen.ops.shapes.dims import Dims, declared
from burnish.codegen.passes import graph as g
from burnish.codegen.symbolic.sizes import ONE, Size

_EACH = having(Trait.ELEMENTWISE | Trait.BROADCAST)
_LAST = frozenset(("GatherElements", "Softmax"))
"""Operators along the last axis."""
_PRODUCTS = frozenset(("Attention", "MatMul"))


def unmerge_heads(model: ir.Model, account: Account) -> bool:
    """Undo a merge of two axes where everything up to their split allows it."""
    rewrites = {"batch and heads stay apart": _unmerged}
    return g.rewrite_nodes(model, account, rewrites, "Reshape")


def _unmerged(model: ir.Model, node: ir.Node) -> bool:
    source = g.unwrap(node.inputs[0])
    lead = _halves(declared(source), declared(node.outputs[0]))
    found = None if lead is None else _Unmerged(lead, node)
    if lead is None or found is None or not found.fits(source):
        return False
    written = _Writer(model, lead, found.merged, node)
    value = written.value(source)
    g.substitute(node, written.nodes, [value])
    return True


def _halves(three: Dims | None, four: Dims | None) -> tuple[Size, Size] | None:
    """The two sizes into which the first of three axes is split, else None."""
    if three is None or four is None or len(three) != 3 or len(four) != 4:
        return None
    if None in three or None in four or three[1:] != four[2:]:
        return None
    batch, heads = map(g.unwrap, four[:2])
    return (batch, heads) if batch * heads == three[0] and heads.value else None


@dataclass
class _Unmerged:
    """Whether a tensor of three axes can be written with the first one split.

    merged: what was four axes, by what it was merged to.
    """

    lead: tuple[Size, Size]
    root: ir.Node
    merged: dict[ir.Value, ir.Value] = field(default_factory=dict)
    products: int = 0

    def fits(self, value: ir.Value) -> bool:
        axes = self._axes(value, strict=False)
        return axes == 4 and self.products > 0 and bool(self.merged)

    def _axes(self, value: ir.Value, strict: bool) -> int | None:
        """How many axes it will have, which spread to four; None where it cannot.

        strict: it must have been merged, for a split that is new gains nothing.
        """
        dims = declared(value)
        if dims is None or None in dims or len(dims) > 3:
            return None
        node = value.producer()
        if node is not None and node.op_type == "Reshape" and node.domain == "":
            source = node.inputs[0]
            if source is not None and _halves(dims, declared(source)) == self.lead:
                self.merged[value] = source
                return 4
        if node is not None and self._repeated(node, dims):
            return 3
        if len(dims) < 3 or dims[0] == ONE:
            return len(dims)
        if node is None or _readers(value, self.root) > 1 or not _passes(node):
            return None if strict else 4
        inner = strict or node.op_type in _PRODUCTS
        self.products += node.op_type in _PRODUCTS
        axes = [
            self._axes(given, inner and place < 3)
            for place, given in enumerate(node.inputs)
            if given is not None
        ]
        known = [count for count in axes if count is not None]
        if len(known) < len(axes):
            return None
        if node.op_type == "GatherElements" and min(known) < 4:
            return None
        return max(known)

    def _repeated(self, node: ir.Node, dims: Dims) -> bool:
        """The same heads for each of the batch: broadcasting does what Tile does."""
        source = node.inputs[0] if node.op_type == "Tile" else None
        before = declared(source)
        if source is None or before is None or len(before) != 3:
            return False
        if before[1:] != dims[1:] or before[0] != self.lead[1]:
            return False
        self.merged[node.outputs[0]] = source
        return True


_ON_SIZES = frozenset(
    ("Cast", "Concat", "Div", "Gather", "Mul", "Shape", "Slice", "Squeeze", "Unsqueeze")
)


def _readers(value: ir.Value, root: ir.Node) -> int:
    """The number of readers, without those that read its shape for `root` alone."""
    users = {user for user, _ in value.uses()}
    return sum(
        user is root or user.op_type != "Shape" or not _for(user, root)
        for user in users
    )


def _for(node: ir.Node, root: ir.Node) -> bool:
    """Whether the numbers that a node makes of sizes are read by `root` in the end."""
    if node is root:
        return True
    users = {user for user, _ in node.outputs[0].uses()}
    if node.op_type not in _ON_SIZES or node.outputs[0].is_graph_output():
        return False
    return all(_for(user, root) for user in users)


def _passes(node: ir.Node) -> bool:
    """Whether an operator means the same on four axes as on three."""
    output = node.outputs[0]
    if len(output.shape or ()) != 3 or output.is_graph_output():
        return False
    if node.op_type in _PRODUCTS:
        return all(len(declared(v) or ()) == 3 for v in node.inputs[:2])
    if node.domain != "":
        return False
    if node.op_type in _LAST:
        return g.attribute(node, "axis", -1) in (-1, 2)
    if node.op_type == "Transpose":
        return list(node.attributes.get_ints("perm", ())) == [0, 2, 1]
    return node.op_type in _EACH


class _Writer:
    """Writes tensors of three axes again with four."""

    def __init__(
        self,
        model: ir.Model,
        lead: tuple[Size, Size],
        merged: dict[ir.Value, ir.Value],
        like: ir.Node,
    ):
        self.model, self.lead, self.merged, self.like = model, lead, merged, like
        self.nodes: list[ir.Node] = []

    def value(self, value: ir.Value) -> ir.Value:
        if value in self.merged:
            return self.merged[value]
        dims = declared(value)
        if dims is None or len(dims) < 3 or dims[0] == ONE:
            return value
        node = value.producer()
        if node is None or _readers(value, self.like) > 1 or not _passes(node):
            return self._spread(value) or self._split(value)
        inputs = [None if x is None else self.value(x) for x in node.inputs]
        attributes = dict(node.attributes)
        if node.op_type in _LAST:
            attributes["axis"] = ir.AttrInt64("axis", -1)
        if node.op_type == "Transpose":
            few = len(inputs[0].shape or ()) == 3 if inputs[0] is not None else False
            swapped = [0, 2, 1] if few else [0, 1, 3, 2]
            attributes["perm"] = ir.AttrInt64s("perm", swapped)
        return self._node(node, value, node.op_type, inputs, list(attributes.values()))

    def _node(
        self,
        node: ir.Node,
        value: ir.Value,
        op_type: str,
        inputs: list[ir.Value | None],
        attributes: list[ir.Attr],
    ) -> ir.Value:
        """A node like `node`, whose result is `value` with four axes."""
        version = node.version
        made = ir.Node(node.domain, op_type, inputs, attributes, version=version)
        self.nodes.append(g.named_like(made, node))
        result = made.outputs[0]
        result.type = value.type
        wide = op_type in ("Expand", "Reshape") or any(
            len(x.shape or ()) == 4 for x in inputs if x is not None
        )
        lead = [size.dim for size in self.lead][0 if wide else 1 :]
        result.shape = ir.Shape([*lead, *list(value.shape or ())[1:]])
        return result

    def _spread(self, value: ir.Value) -> ir.Value | None:
        """A value that all heads share, broadcast to four axes instead of three."""
        node = g.maker_of(value, "Expand")
        source = None if node is None else node.inputs[0]
        dims = declared(source)
        wide = [v for v in self.merged.values() if len(v.shape or ()) == 4]
        if source is None or not dims or not wide:
            return None
        if len(dims) == 3 and dims[0] != ONE:
            return None
        lead = self._sizes(wide[0], 0, 2)
        shape = self._joined(lead, self._sizes(value, 1, 3))
        return self._node(self.like, value, "Expand", [source, shape], [])

    def _split(self, value: ir.Value) -> ir.Value:
        """A Reshape of what never was merged here."""
        heads = g.unwrap(self.lead[1].value)
        lead = g.new_constant(self.model, f"{value.name}_heads", [-1, heads])
        shape = self._joined(lead, self._sizes(value, 1, 3))
        return self._node(self.like, value, "Reshape", [value, shape], [])

    def _sizes(self, value: ir.Value, start: int, end: int) -> ir.Value:
        ends = {"start": start, "end": end}
        return self._of_sizes(ir.node("Shape", [value], ends), end - start)

    def _joined(self, lead: ir.Value, rest: ir.Value) -> ir.Value:
        return self._of_sizes(ir.node("Concat", [lead, rest], {"axis": 0}), 4)

    def _of_sizes(self, node: ir.Node, length: int) -> ir.Value:
        self.nodes.append(g.named_like(node, self.like))
        output = node.outputs[0]
        output.type = ir.TensorType(ir.DataType.INT64)
        output.shape = ir.Shape([length])
        return output
