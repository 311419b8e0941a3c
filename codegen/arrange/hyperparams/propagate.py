"""Dimension unification: which sizes of a program are equal, along its data flow.

A class's sizes are holes (`opened`). The input features of a layer equal the
output features of the layer before it; summands have one shape; so do an argument and
the parameter of the called module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burnish.codegen.arrange.analysis.holes import Hole
from burnish.codegen.arrange.analysis.opening import opened
from burnish.codegen.arrange.hyperparams import transfer_rules
from burnish.codegen.arrange.hyperparams.size_classes import Dims, Node, Ties
from burnish.codegen.arrange.hyperparams.tied_axes import axes
from burnish.codegen.ops import Trait, functions, twins
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    If,
    Keyed,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    ModuleCall,
    Name,
    Repeat,
    SelfAttr,
    Slice,
    Statement,
    Subscript,
    UnaryOp,
    Value,
    held,
)
from burnish.codegen.symbolic import transfer

_ANY = -1


def read(classes: Sequence[ClassPlan]) -> Ties:
    """The equalities of sizes that follow from the classes' data flow."""
    ties = Ties({plan.name: plan.parameters for plan in classes})
    outlines = {plan.name: _Outline(ties, plan) for plan in classes}
    for outline in outlines.values():
        ties.opened[outline.plan.name] = outline.plan, outline.holes
        outline.run()
    made = {name: outline.members for name, outline in outlines.items()}
    for plan in classes:
        for pair in plan.shared:
            one, other = (
                axes(end, plan.name, made, lambda kind, of: outlines[kind].size(of))
                for end in pair
            )
            ties.alike(one, other)
    return ties


class _Outline:
    """Abstract interpretation of one class: the sizes of its inputs and results."""

    def __init__(self, sizes: Ties, plan: ClassPlan):
        self.sizes = sizes
        self.plan, self.holes = opened(plan, sizes.parameters)
        for hole in self.holes:
            sizes.node(hole, hole.value)
        self.members = dict(self.plan.members)
        self.items: dict[Value, SelfAttr] = {}

    def run(self) -> None:
        inputs = [self._value(value) for value in self.plan.inputs]
        self._block(self.plan.block)
        results = [self.dims(result) for result in self.plan.block.results]
        self.sizes.outlines[self.plan.name] = (inputs, results)

    def _value(self, value: Value) -> Dims | None:
        if value.shape is None or value.host:
            return None
        return [
            self.sizes.node(("dim", id(value), axis), size)
            for axis, size in enumerate(value.shape)
        ]

    def _block(self, block: Block) -> None:
        for statement in block.statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Loop):
            starts = [self.dims(e) for e in statement.initial]
            for value, start in zip(statement.carried, starts, strict=True):
                self.sizes.alike(self._value(value), start)
            for item, over in statement.iterables():
                if isinstance(over, SelfAttr | Method):
                    own = over if isinstance(over, SelfAttr) else SelfAttr(("",))
                    self.items[item] = own  # SelfAttr(("",)): self.values()
        for inner in statement.blocks():
            self._block(inner)
        if isinstance(statement, Loop):
            offset = 0 if statement.going is None else 1
            after = statement.body.results[offset:]
            for target, result in zip(statement.targets, after, strict=False):
                self.sizes.alike(self._value(target), self.dims(result))
        if isinstance(statement, If):
            for inner in statement.blocks():
                for target, result in zip(
                    statement.targets, inner.results, strict=True
                ):
                    self.sizes.alike(self._value(target), self.dims(result))
        if isinstance(statement, Assign):
            self._assigned(statement)

    def _assigned(self, statement: Assign) -> None:
        expression, targets = statement.expression, statement.targets
        if len(targets) == 1:
            own = self._value(targets[0])
            found = self.dims(expression, own)
            if found is not None and own is not None and len(found) == len(own):
                for a, b in zip(own, found, strict=True):
                    self.sizes.same(a, b)
            elif own is not None and isinstance(expression, Call):
                for arg in expression.args:
                    self.sizes.kept(own, self.dims(arg))
            return
        shapes = [self._value(target) for target in targets]
        if isinstance(expression, ModuleCall):
            for own, made in zip(shapes, self._called(expression) or [], strict=False):
                self.sizes.alike(own, made)
        elif isinstance(expression, Call) and expression.args:
            axis = _axis(expression) if expression.function == "ops.split" else None
            transfer_rules.split(
                self.sizes, self.dims(expression.args[0]), axis, shapes
            )

    # --- expressions ---

    def dims(self, expression: Expression, own: Dims | None = None) -> Dims | None:
        """The sizes of an expression's result.

        own: those that it is known to have.
        """
        match expression:
            case Value():
                return self._value(expression)
            case SelfAttr(path=(str(name),)):
                return self._stored(self.members.get(name))
            case ModuleCall():
                made = self._called(expression)
                return made[0] if made and len(made) == 1 else None
            case BinOp(operator="@"):
                return self._product(expression)
            case BinOp(left=left, right=right):
                return transfer_rules.broadcast(
                    self.sizes, [self.dims(left), self.dims(right)]
                )
            case Method(name="transpose", target=target, args=args):
                inner = self.dims(target)
                axes = (a.value for a in args if isinstance(a, Literal))
                order = [axis for axis in axes if isinstance(axis, int)]
                return None if inner is None else transfer.transposed(inner, order)
            case Attribute(name="mT" | "T", target=target):
                inner = self.dims(target)
                return None if inner is None else [*inner[:-2], *inner[:-3:-1]]
            case Method(name="reshape", target=target, args=args):
                return self._reshaped(self.dims(target), args, own)
            case Method(name="unsqueeze", target=target, args=(Literal(value=axes),)):
                inner, places = self.dims(target), transfer_rules.several(axes)
                if inner is None or places is None:
                    return None
                return transfer.unsqueezed(inner, places, lambda: self.sizes.new(1))
            case Method(name="mean" | "sum" | "squeeze", target=target):
                return transfer_rules.reduced(expression, self.dims(target), own)
            case Method(name="to", target=target) | UnaryOp(operand=target):
                return self.dims(target)
            case Subscript(
                target=ModuleCall() as call, keys=(Literal(value=int() as place),)
            ):
                made = self._called(call)
                return made[place] if made and place < len(made) else None
            case Subscript(
                target=Attribute(target=SelfAttr(path=(str(name),)), name="weight"),
                keys=(_,),
            ):
                return self._row(self.members.get(name))
            case Subscript():
                return self._item(expression)
            case Call(function="ops.concat", args=(ListOrTuple(items=items),)):
                shapes = [shape for item in items if (shape := self.dims(item))]
                if not shapes or len(shapes) < len(items):
                    return None
                return transfer.concat(shapes, _axis(expression), self.sizes)
            case Call(function="ops.conv"):
                return self._convolved(expression)
            case Call(function="ops.expand", args=(x,), options=(("shape", shape),)):
                after = self._written(shape)
                return after and transfer_rules.broadcast(
                    self.sizes, [self.dims(x), after]
                )
            case Call(function="ops.scaled_dot_product_attention"):
                return self._attended(expression)
            case Call(function="ops.rotary_embedding", args=(x, *tables)):
                times = 2 if "per_pair" in dict(expression.options) else 1
                angles = list(map(self.dims, tables))
                return transfer_rules.rotary(self.sizes, self.dims(x), angles, times)
            case Call(function="Tensor.zeros" | "Tensor.full", args=(shape, *_)):
                return self._written(shape)
            case Call(function=function, args=args):
                return self._function(function, args)
        return None

    def _row(self, made: Expression | None) -> Dims | None:
        """A row of an embedding."""
        if isinstance(made, Call) and made.function == "nn.Embedding":
            return [self.size(made.args[1])]
        return None

    def _stored(self, made: Expression | None) -> Dims | None:
        """The shape of a Param or Buffer."""
        if not isinstance(made, Call) or made.function not in ("nn.Param", "nn.Buffer"):
            return None
        return self._written(made.args[1]) if len(made.args) > 1 else None

    def _written(self, shape: Expression) -> Dims | None:
        """A shape that is written as such."""
        if isinstance(shape, ListOrTuple):
            return [self.size(item) for item in shape.items]
        if isinstance(shape, Literal) and isinstance(shape.value, tuple):
            return [self.sizes.new(size) for size in shape.value]
        return None

    def size(self, written: Expression | None) -> Node:
        """The size that is written in a constructor or a shape."""
        if isinstance(written, Hole):
            return written
        if isinstance(written, Name):
            return "argument", self.plan.name, written.text
        if isinstance(written, Literal) and type(written.value) is int:
            return self.sizes.new(written.value)
        return self.sizes.new()

    def _reshaped(
        self, before: Dims | None, args: tuple[Expression, ...], own: Dims | None
    ) -> Dims:
        after = [
            self.sizes.new()
            if isinstance(a, Literal) and a.value == _ANY
            else self.size(a)
            for a in args
        ]
        if own is not None and len(own) == len(after):
            for a, b in zip(after, own, strict=True):
                self.sizes.same(a, b)
        if not before or not after:
            return after
        transfer_rules.reshaped(self.sizes, before, after)
        return after

    def _convolved(self, call: Call) -> Dims | None:
        groups = dict(call.options).get("groups", Literal(1))
        number = groups.value if isinstance(groups, Literal) else None
        return transfer_rules.conv(self.sizes, number, *map(self.dims, call.args))

    def _product(self, product: BinOp) -> Dims | None:
        left, right = self.dims(product.left), self.dims(product.right)
        if not left or not right:
            return None
        if len(right) == 2:
            self.sizes.layers.append((right[0], right[1]))
        return transfer.matmul(left, right, self.sizes)

    def _item(self, item: Subscript) -> Dims | None:
        inner = self.dims(item.target)
        if inner is None:
            return None
        keys = list(item.keys)
        places = [key for key in keys if isinstance(key, Value) and not key.host]
        if len(places) == len(keys) > 1:
            picked = [self._value(key) or [] for key in places]
            return transfer.index(inner, picked, self.sizes)
        for place, key in enumerate(keys):
            if isinstance(key, Literal) and key.value is ...:
                whole = [Slice()] * (len(inner) - len(keys) + 1)
                keys[place : place + 1] = whole
                break
        found: Dims = []
        left = list(inner)
        for key in keys:
            if not left:
                return None
            size = left.pop(0)
            if isinstance(key, Slice):
                found.append(self._sliced(size, key))
            elif isinstance(key, Value) and not key.host and len(keys) == 1:
                self.sizes.rows += [(size, width) for width in left[:1]]
                found += self._value(key) or []
            elif not (isinstance(key, Literal) and type(key.value) is int):
                return None
        return [*found, *left]

    def _sliced(self, size: Node, key: Slice) -> Node:
        """An axis that may be halved."""
        ends = [end for end in (key.start, key.stop) if end is not None]
        if not ends and key.step is None:
            return size
        number = self.sizes.of(size)
        part = self.sizes.new()
        if len(ends) == 1 and key.step is None and number is not None:
            end = self.size(ends[0])
            if self.sizes.of(end) == number / 2:
                self.sizes.same(end, part)
                self.sizes.product(size, end, times=2)
                return end
        return part

    def _attended(self, call: Call) -> Dims | None:
        q, k, v = map(self.dims, call.args[:3])
        mask = dict(call.options).get("attn_mask")
        scores = None if mask is None else self.dims(mask)
        return transfer_rules.attention(self.sizes, q, k, v, scores)

    def _function(self, function: str, args: tuple[Expression, ...]) -> Dims | None:
        shapes = [self.dims(arg) for arg in args]
        if function == "ops.where":
            return transfer_rules.broadcast(
                self.sizes, [shape for shape in shapes if shape]
            )
        if function == "ops.gather_nd" and len(shapes) == 2 and all(shapes):
            rows, index = shapes[0] or [], shapes[1] or []
            self.sizes.rows += [(rows[0], width) for width in rows[1:2]]
            depth = self.sizes.of(index[-1])
            return transfer.gather_nd(rows, index, 1) if depth == 1 else None
        if function in ("ops.layer_norm", "ops.rms_norm") and shapes[0]:
            for weight in filter(None, shapes[2:]):
                self.sizes.same(shapes[0][-1], weight[-1])
                self.sizes.norms.append(weight[-1])
        if function in _SAME and shapes:
            return shapes[0]
        return None

    # --- parts ---

    def _called(self, call: ModuleCall) -> list[Dims | None] | None:
        inputs = [self.dims(value) for value in call.inputs]
        target = call.target
        if isinstance(target, Value):
            target = self.items.get(target, target)
        if not isinstance(target, SelfAttr):
            return None
        made = self.members.get(str(target.path[0]))
        if target is call.target:
            made = held(made, target.path[1:], self.plan.base)
        return self._part(made, inputs)

    def _part(
        self, made: Expression | None, inputs: list[Dims | None]
    ) -> list[Dims | None] | None:
        if isinstance(made, Conditional):
            found = self._part(made.then, inputs)
            is_optional = isinstance(
                made.otherwise, Literal
            )  # it is called where it is there
            return found if is_optional else None
        if isinstance(made, Repeat):
            return self._part(made.item, inputs)
        if isinstance(made, ListOrTuple):
            return self._part(made.items[0], inputs) if made.items else None
        if isinstance(made, Method):  # super().__init__(...)
            return self._part(made.args[0], inputs)
        if isinstance(made, UnaryOp):
            return self._part(made.operand, inputs)
        if not isinstance(made, Call):
            return None
        if made.function == "nn.Sequential":
            for part in _in_order(made):
                found = self._part(part, inputs)
                inputs = found if found is not None else [None]
            return inputs
        if made.function in self.sizes.outlines:
            return self._own_part(made, inputs)
        return [self._layer(made, inputs[0] if inputs else None)]

    def _own_part(self, made: Call, inputs: list[Dims | None]) -> list[Dims | None]:
        taken, given = self.sizes.outlines[made.function]
        names = self.sizes.parameters[made.function]
        written = dict(zip(names, made.args, strict=False)) | dict(made.options)
        here = {
            self.sizes.find(("argument", made.function, name)): self.size(value)
            for name, value in written.items()
        }

        def local(shape: Dims | None) -> Dims | None:
            if shape is None:
                return None
            return [here.get(self.sizes.find(node), node) for node in shape]

        if not names:
            for one, other in zip(taken, inputs, strict=False):
                self.sizes.alike(one, other)
        else:
            for one, other in zip(map(local, taken), inputs, strict=False):
                self.sizes.kept(one, other)
        return [local(shape) for shape in given]

    def _layer(self, made: Call, x: Dims | None) -> Dims | None:
        """Shape transfer of one of the library's layers."""
        kind, args = made.function.removeprefix("nn."), made.args
        first = self.size(args[0]) if args else None
        second = self.size(args[1]) if len(args) > 1 else None
        if kind == "Embedding":
            self.sizes.rows.append((first, second))
            return None if x is None else transfer.gather([first, second], x, 0)
        if not x:
            return None
        if kind == "Linear":
            self.sizes.layers.append((first, second))
            return transfer.matmul(x, [first, second], self.sizes)
        if kind in ("LayerNorm", "RMSNorm") and first is not None:
            self.sizes.same(x[-1], first)
            return x
        if kind == "MultiheadAttention":
            self.sizes.same(x[-1], first)
            return x
        if kind.startswith("Conv") and len(x) > 1:
            groups = self.size(dict(made.options).get("groups"))
            if self.sizes.of(groups) != 1 and self.sizes.agree(groups, first):
                self.sizes.agree(first, second)  # depthwise
            return transfer_rules.conv(self.sizes, 1, x, [second, first])
        if kind.startswith(("BatchNorm", "InstanceNorm")) and len(x) > 1:
            self.sizes.same(x[1], first)
            return x
        if "Pool" in kind or kind in ("Permute", "Flatten"):
            return transfer_rules.moved(self.sizes, kind, args, x)
        return x if kind in _LAYERS else None


def _in_order(made: Call) -> Iterator[Expression]:
    """The modules of a Sequential; two of each repeat."""
    named = len(made.args) == 1 and isinstance(made.args[0], Keyed)
    for part in made.args[0].children() if named else made.args:
        yield from (part, part) if isinstance(part, Repeat) else (part,)


def _axis(call: Call) -> int:
    """The option `axis`, which is a number."""
    axis = dict(call.options).get("axis", Literal(0))
    assert isinstance(axis, Literal)
    return int(axis.value)


_KEEP = Trait.ELEMENTWISE | Trait.SAME_SHAPE
_SAME = functions(_KEEP) | {"ops.layer_norm", "ops.rms_norm"}
_LAYERS = {twin.layer for twin in twins(_KEEP).values()} | {
    *("Dropout", "Hardtanh", "Identity"),  # layers of no function
}
