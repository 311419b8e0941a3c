"""Chains of modules: a loop over a list of equals, or a Sequential."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from burnish.codegen.arrange.members import (
    WeightPath,
    constructor,
    layer_weights,
)
from burnish.codegen.program import (
    Apply,
    Assign,
    Block,
    Call,
    Expression,
    Keyed,
    Layer,
    Literal,
    Loop,
    Own,
    Statement,
    Value,
    Weight,
)

_MODULES = {
    "ops.relu": "ReLU",
    "ops.relu6": "ReLU6",
    "ops.sigmoid": "Sigmoid",
    "ops.tanh": "Tanh",
    "ops.gelu": "GELU",
    "ops.silu": "SiLU",
    "ops.mish": "Mish",
    "ops.hard_swish": "Hardswish",
    "ops.hard_sigmoid": "Hardsigmoid",
    "ops.elu": "ELU",
    "ops.selu": "SELU",
    "ops.softplus": "Softplus",
}

_POOLS = {"ops.max_pool": "MaxPool", "ops.avg_pool": "AvgPool"}


@dataclass
class Part:
    """A module as its parent sees it: its constructor, weights, inputs and outputs."""

    constructor: Expression
    weights: list[WeightPath]
    inputs: tuple[Value | Weight, ...]
    outputs: tuple[Value, ...]
    statements: set[int] = field(default_factory=set)

    def call(self, own: Expression) -> Assign:
        """The statement that calls it as the attribute `own`."""
        return Assign(self.outputs, (), Apply(own, self.inputs))

    def calls(self, own: Expression) -> list[Statement]:
        """What is written where it is called."""
        return [self.call(own)]


def function_part(statement: Statement) -> Part | None:
    """One statement as a module: a layer, or a function that has a module's form."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return None
    expression, outputs = statement.expression, statement.targets
    if isinstance(expression, Layer):
        made, weights = constructor(expression), layer_weights(expression)
        inputs = expression.inputs
    elif isinstance(expression, Call) and (module := _module_of(expression)):
        made, weights, inputs = module, [], expression.args
    else:
        return None
    values = tuple(value for value in inputs if isinstance(value, Value))
    if len(values) != len(inputs):
        return None
    return Part(made, weights, values, outputs, {id(statement)})


def _module_of(call: Call) -> Call | None:
    """The module that does what a function call does."""
    rank = call.args[0].rank if call.args else None
    if call.function in _MODULES and not call.options:
        return Call(f"nn.{_MODULES[call.function]}")
    if call.function in _POOLS and rank in (3, 4, 5):
        options = dict(call.options)
        size = options.pop("kernel_size", None)
        if size is not None:
            kind = f"nn.{_POOLS[call.function]}{rank - 2}d"
            return Call(kind, (size,), tuple(options.items()))
    if call.function == "ops.global_avg_pool" and rank in (3, 4, 5):
        return Call(f"nn.AdaptiveAvgPool{rank - 2}d", (Literal(1),))
    return None


def as_sequential(parts: dict[int, Part]) -> Part | None:
    """A chain of one-input modules as `nn.Sequential`; gaps become identities."""
    chain = list(parts.values())
    if list(parts) != sorted(parts) or any(len(part.inputs) != 1 for part in chain):
        return None
    filled = [
        parts[n].constructor if n in parts else Call("nn.Identity")
        for n in range(max(parts) + 1)
    ]
    weights = [
        (f"{n}.{path}", weight)
        for n, part in parts.items()
        for path, weight in part.weights
    ]
    statements = set().union(*(part.statements for part in chain))
    made = Call("nn.Sequential", tuple(filled))
    return Part(made, weights, chain[0].inputs, chain[-1].outputs, statements)


def as_named_sequential(parts: dict[str, Part]) -> Part | None:
    """A chain of one-input modules as `nn.Sequential({"name": ...})`."""
    chain = list(parts.values())
    if any(len(part.inputs) != 1 for part in chain):
        return None
    named = Keyed(tuple((name, part.constructor) for name, part in parts.items()))
    weights = [
        (f"{name}.{path}", weight)
        for name, part in parts.items()
        for path, weight in part.weights
    ]
    statements = set().union(*(part.statements for part in chain))
    made = Call("nn.Sequential", (named,))
    return Part(made, weights, chain[0].inputs, chain[-1].outputs, statements)


def as_loop(chain: list[Part], singular: str) -> Callable[[Own], Statement] | None:
    """A chain of equal modules as a loop over their list, given where that is."""
    first = chain[0]
    if len(chain) < 2 or not isinstance(first.constructor, Call):
        return None
    if first.constructor.function.startswith("nn."):
        return None
    rolling = first.inputs
    place = chain[1].inputs.index(first.outputs[0])
    if place >= len(rolling):
        return None
    for part, before in zip(chain[1:], chain, strict=False):
        expected = list(first.inputs)
        expected[place] = before.outputs[0]
        same = isinstance(part.constructor, Call) and (
            part.constructor.function == first.constructor.function
        )
        if not same or list(part.inputs) != expected:
            return None

    def loop(own: Own) -> Statement:
        item = Value(singular)
        carried = Value("x", first.outputs[0].dtype, first.outputs[0].shape)
        inputs = list(rolling)
        inputs[place] = carried
        result = Value("x", carried.dtype, carried.shape)
        body = Block([Assign((result,), (), Apply(item, tuple(inputs)))], [result])
        return Loop(
            chain[-1].outputs,
            items=own,
            index=item,
            carried=(carried,),
            initial=(rolling[place],),
            body=body,
        )

    return loop
