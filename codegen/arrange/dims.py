"""Which sizes of a program are the same size, found along its data flow.

A class's sizes are numbered (`slots_of`). What a layer takes as features is what the
layer before it gave; what is added has one shape; a part's input is its owner's value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from burnish.codegen.arrange.slots import changed, slots_of
from burnish.codegen.program import (
    Apply,
    Assign,
    Attribute,
    Block,
    Call,
    ClassPlan,
    Conditional,
    Display,
    Expression,
    Infix,
    Item,
    Keyed,
    Literal,
    Loop,
    Method,
    Name,
    Own,
    Repeat,
    Slice,
    Statement,
    Value,
)

Node = Hashable
Dims = list[Node]
_ANY = -1


class Sizes:
    """Sizes that are known to be equal, each with its number where that is known."""

    def __init__(self, classes: Sequence[ClassPlan]):
        self.parent: dict[Node, Node] = {}
        self.number: dict[Node, int] = {}
        self.fresh = 0
        self.parameters = {plan.name: plan.parameters for plan in classes}
        self.outlines: dict[str, tuple[list[Dims | None], list[Dims | None]]] = {}
        for plan in classes:
            _Outline(self, plan).run()

    def find(self, node: Node) -> Node:
        """What stands for all sizes that equal this one."""
        root = node
        while (up := self.parent.get(root, root)) != root:
            root = up
        while (up := self.parent.get(node, node)) != root:
            self.parent[node], node = root, up
        return root

    def node(self, node: Node, number: object) -> Node:
        if isinstance(number, int):
            self.number[self.find(node)] = number
        return node

    def new(self, number: object = None) -> Node:
        self.fresh += 1
        return self.node(("new", self.fresh), number)

    def same(self, one: Node, other: Node) -> None:
        """Say that two sizes are one; numbers that differ are not."""
        a, b = self.find(one), self.find(other)
        if a == b:
            return
        known, also = self.number.get(a), self.number.get(b)
        if known is not None and also is not None and known != also:
            return
        self.parent[b] = a
        if known is None and also is not None:
            self.number[a] = also

    def alike(self, one: Dims | None, other: Dims | None) -> None:
        """Say that two shapes are one from the right on, but for what is broadcast."""
        if one is None or other is None:
            return
        for a, b in zip(reversed(one), reversed(other), strict=False):
            if 1 not in (self.of(a), self.of(b)):
                self.same(a, b)

    def of(self, node: Node) -> int | None:
        return self.number.get(self.find(node))


class _Outline:
    """Reads one class: the sizes of what goes in and of what comes out."""

    def __init__(self, sizes: Sizes, plan: ClassPlan):
        self.sizes = sizes
        self.plan = plan
        numbers = [size for _, size in slots_of(plan, sizes.parameters)]
        places = iter(range(len(numbers)))
        self.plan = changed(
            plan, sizes.parameters, lambda slot, size: Name(f"#{next(places)}")
        )
        for place, number in enumerate(numbers):
            sizes.node(("slot", plan.name, place), number)
        self.members = dict(self.plan.members)

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
        for inner in statement.blocks():
            self._block(inner)
        if isinstance(statement, Loop):
            offset = 0 if statement.going is None else 1
            after = statement.body.results[offset:]
            for target, result in zip(statement.targets, after, strict=False):
                self.sizes.alike(self._value(target), self.dims(result))
            over = statement.items
            if isinstance(over, Own | Method) and statement.index is not None:
                own = over if isinstance(over, Own) else Own(("",))  # self.values()
                self.members[f"#{id(statement.index)}"] = own
                self._looped(statement)
        if isinstance(statement, Assign):
            self._assigned(statement)

    def _looped(self, loop: Loop) -> None:
        """The body again, now that it is known what the loop runs over."""
        self._block(loop.body)
        for target, result in zip(loop.targets, loop.body.results, strict=False):
            self.sizes.alike(self._value(target), self.dims(result))

    def _assigned(self, statement: Assign) -> None:
        expression, targets = statement.expression, statement.targets
        if len(targets) == 1:
            found = self.dims(expression)
            own = self._value(targets[0])
            if found is not None and own is not None and len(found) == len(own):
                for a, b in zip(own, found, strict=True):
                    self.sizes.same(a, b)
            elif own is not None and isinstance(expression, Call):
                for arg in expression.args:
                    self._kept(own, self.dims(arg))
            return
        made = self._called(expression) if isinstance(expression, Apply) else None
        for i, target in enumerate(targets):
            own = self._value(target)
            if made is not None and i < len(made):
                self.sizes.alike(own, made[i])
            elif isinstance(expression, Call) and expression.args:
                self._kept(own, self.dims(expression.args[0]))

    # --- expressions ---

    def dims(self, expression: Expression) -> Dims | None:
        """The sizes of what an expression gives."""
        match expression:
            case Value():
                return self._value(expression)
            case Own(path=(str(name),)):
                return self._stored(self.members.get(name))
            case Apply():
                made = self._called(expression)
                return made[0] if made and len(made) == 1 else None
            case Infix(operator="@"):
                return self._product(expression)
            case Infix(left=left, right=right):
                return self._broadcast([self.dims(left), self.dims(right)])
            case Method(name="transpose", target=target, args=args):
                inner = self.dims(target)
                order = [a.value for a in args if isinstance(a, Literal)]
                if inner is None or sorted(order) != list(range(len(inner))):
                    return None
                return [inner[axis] for axis in order]
            case Attribute(name="mT" | "T", target=target):
                inner = self.dims(target)
                return None if inner is None else [*inner[:-2], *inner[:-3:-1]]
            case Method(name="reshape", target=target, args=args):
                return self._reshaped(self.dims(target), args)
            case Method(name="to", target=target):
                return self.dims(target)
            case Item():
                return self._item(expression)
            case Call(function="ops.expand", args=(x,), options=(("shape", shape),)):
                return self._expanded(self.dims(x), shape)
            case Call(function=function, args=args):
                return self._function(function, args)
        return None

    def _stored(self, made: Expression | None) -> Dims | None:
        """The shape of a Param or Buffer."""
        if not isinstance(made, Call) or made.function not in ("nn.Param", "nn.Buffer"):
            return None
        shape = made.args[1] if len(made.args) > 1 else None
        if isinstance(shape, Display):
            return [self._size(item) for item in shape.items]
        if isinstance(shape, Literal) and isinstance(shape.value, tuple):
            return [self.sizes.new(size) for size in shape.value]
        return None

    def _size(self, written: Expression | None) -> Node:
        """The size that is written in a constructor or a shape."""
        if isinstance(written, Name) and written.text.startswith("#"):
            return "slot", self.plan.name, int(written.text[1:])
        if isinstance(written, Name):
            return "argument", self.plan.name, written.text
        if isinstance(written, Literal) and type(written.value) is int:
            return self.sizes.new(written.value)
        return self.sizes.new()

    def _reshaped(self, before: Dims | None, args: tuple[Expression, ...]) -> Dims:
        after = [
            self.sizes.new()
            if isinstance(a, Literal) and a.value == _ANY
            else self._size(a)
            for a in args
        ]
        if before and after:
            for a, b in zip(before, after, strict=False):
                if self.sizes.of(a) != self.sizes.of(b):
                    break
                self.sizes.same(a, b)
            if self.sizes.of(before[-1]) == self.sizes.of(after[-1]) is not None:
                self.sizes.same(before[-1], after[-1])
        return after

    def _expanded(self, before: Dims | None, shape: Expression) -> Dims | None:
        """What is repeated along axes of length 1, and along new ones."""
        if before is None or not isinstance(shape, Display):
            return None
        after = [self._size(item) for item in shape.items]
        for i, size in enumerate(reversed(before[-len(after) :]), 1):
            if self.sizes.of(size) != 1:
                after[-i] = size
        return after

    def _broadcast(self, shapes: list[Dims | None]) -> Dims | None:
        known = [shape for shape in shapes if shape]
        if not known or len(known) < len(shapes):
            return known[0] if len(known) == 1 else None
        longest = max(known, key=len)
        for shape in known:
            self.sizes.alike(longest, shape)
        result = list(longest)
        for shape in known:
            for i in range(1, len(shape) + 1):
                if self.sizes.of(result[-i]) == 1:
                    result[-i] = shape[-i]
        return result

    def _product(self, product: Infix) -> Dims | None:
        left, right = self.dims(product.left), self.dims(product.right)
        if not left or right is None or len(right) < 2:
            return None
        self.sizes.same(left[-1], right[-2])
        return [*left[:-1], right[-1]]

    def _item(self, item: Item) -> Dims | None:
        inner = self.dims(item.target)
        if inner is None:
            return None
        found: Dims = []
        left = list(inner)
        for key in item.keys:
            if not left:
                return None
            size = left.pop(0)
            if isinstance(key, Slice):
                whole = key.start is None and key.stop is None and key.step is None
                found.append(size if whole else self.sizes.new())
            elif not (isinstance(key, Literal) and type(key.value) is int):
                return None
        return [*found, *left]

    def _function(self, function: str, args: tuple[Expression, ...]) -> Dims | None:
        shapes = [self.dims(arg) for arg in args]
        if function == "ops.scaled_dot_product_attention" and all(shapes[:3]):
            q, k, v = (shape or [] for shape in shapes[:3])
            self.sizes.same(q[-1], k[-1])
            return [*q[:-1], v[-1]]
        if function == "ops.where":
            return self._broadcast([shape for shape in shapes if shape])
        if function == "ops.concat":
            for shape in shapes[1:]:
                self._kept(shapes[0], shape)
            return None
        if function in _SAME and shapes:
            return shapes[0]
        return None

    def _kept(self, one: Dims | None, other: Dims | None) -> None:
        """Say that axes with equal numbers are the same, as of parts of a whole."""
        if one and other and len(one) == len(other):
            for a, b in zip(one, other, strict=True):
                if self.sizes.of(a) is not None:
                    self.sizes.same(a, b)

    # --- parts ---

    def _called(self, call: Apply) -> list[Dims | None] | None:
        inputs = [self.dims(value) for value in call.inputs]
        target = call.target
        if isinstance(target, Value):
            target = self.members.get(f"#{id(target)}", target)
        if not isinstance(target, Own):
            return None
        made = self.members.get(str(target.path[0]))
        if isinstance(made, Display) and len(target.path) == 2:
            place = target.path[1]
            made = made.items[place] if isinstance(place, int) else None
        return self._part(made, inputs)

    def _part(
        self, made: Expression | None, inputs: list[Dims | None]
    ) -> list[Dims | None] | None:
        if isinstance(made, Conditional):
            self._part(made.then, inputs)
            return None
        if isinstance(made, Repeat):
            return self._part(made.item, inputs)
        if isinstance(made, Display):
            return self._part(made.items[0], inputs) if made.items else None
        if isinstance(made, Method):
            return self._part(made.args[0], inputs)  # super().__init__(...)
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
            self.sizes.find(("argument", made.function, name)): self._size(value)
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
                self._kept(one, other)
        return [local(shape) for shape in given]

    def _layer(self, made: Call, x: Dims | None) -> Dims | None:
        """What one of the library's layers takes and gives."""
        kind, args = made.function.removeprefix("nn."), made.args
        first = self._size(args[0]) if args else None
        second = self._size(args[1]) if len(args) > 1 else None
        if kind == "Embedding":
            return None if x is None else [*x, second]
        if not x:
            return None
        if kind == "Linear":
            self.sizes.same(x[-1], first)
            return [*x[:-1], second]
        if kind in ("LayerNorm", "RMSNorm") and first is not None:
            self.sizes.same(x[-1], first)
            return x
        if kind.startswith("Conv") and len(x) > 1:
            self.sizes.same(x[1], first)
            return [x[0], second, *(self.sizes.new() for _ in x[2:])]
        if kind.startswith(("BatchNorm", "InstanceNorm")) and len(x) > 1:
            self.sizes.same(x[1], first)
            return x
        return x if kind in _LAYERS else None


def _in_order(made: Call) -> Iterator[Expression]:
    """What a Sequential runs; of what it repeats, two."""
    named = len(made.args) == 1 and isinstance(made.args[0], Keyed)
    for part in made.args[0].children() if named else made.args:
        yield from (part, part) if isinstance(part, Repeat) else (part,)


_SAME = frozenset(
    f"ops.{name}"
    for name in (
        *("relu", "relu6", "gelu", "silu", "swish", "sigmoid", "tanh", "softmax"),
        *("mish", "hard_swish", "dropout", "layer_norm", "rms_norm", "leaky_relu"),
        *("log_softmax", "erf", "exp", "log", "sqrt", "elu", "softplus", "abs"),
    )
)
_LAYERS = frozenset(
    ("ReLU", "ReLU6", "GELU", "SiLU", "Sigmoid", "Tanh", "Dropout", "Identity")
)
