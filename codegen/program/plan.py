"""A whole program, and the classes into which it is arranged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from burnish.codegen.program.dataflow import demand_order
from burnish.codegen.program.expressions import (
    Call,
    ListOrTuple,
    Method,
    ModuleCall,
    Repeat,
    UnaryOp,
)
from burnish.codegen.program.leaves import (
    Change,
    Expression,
    Shape,
    Value,
    Weight,
    walk,
)
from burnish.codegen.program.printed import printed
from burnish.codegen.program.statements import Assign, Block, Loop


@dataclass(eq=False)
class Program:
    """A whole model: inputs in order, a body, names and shapes of outputs.

    unknown: operators that methods stand for, and the names of their nodes.
    resorted: a tool has sorted the nodes anew, over the whole graph.
    `str(program)` is its text, one statement a line; weights have no data there.
    """

    inputs: list[Value]
    optional: dict[Value, Any]
    body: Block
    output_names: list[str]
    outputs: list[tuple[str | None, Shape | None]]
    unknown: dict[str, list[str]] = field(default_factory=dict)
    resorted: bool = False

    def __str__(self) -> str:
        return printed(self)


@dataclass(eq=False)
class ClassPlan:
    """One class of the source: its members and its forward.

    contract: the shapes that it takes and gives; about: further lines of its docstring.
    members: attribute and constructor, in order; parameters: the constructor's
    arguments, defaults: their default values. base: the class that it extends; the
    member "" is the call of the base's constructor. shared: paths of weights that are
    tied, with the path that each is tied to. divided: arguments, each with one that
    must divide it so many times. tower: classes of two towers are not merged.
    words: what the attributes that hold the class call it; none where the file does.
    is_part: the model of a graph inside, whose inputs keep the file's names.
    inputs and `block.results` are what `forward` takes and returns.
    """

    name: str
    members: list[tuple[str, Expression]]
    inputs: list[Value]
    block: Block
    contract: str = ""
    about: str = ""
    parameters: list[str] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    base: str = "nn.Module"
    shared: list[tuple[Expression, Expression]] = field(default_factory=list)
    divided: list[tuple[str, str, int]] = field(default_factory=list)
    tower: str = ""
    words: list[str] = field(default_factory=list)
    is_part: bool = False

    def changed(self, member: str, change: Change) -> ClassPlan:
        """The class with another constructor for a member."""
        members = [(n, change(m) if n == member else m) for n, m in self.members]
        return replace(self, members=members)

    def calls(self) -> list[str]:
        """The functions and classes that its constructor calls, each once."""
        return called_by(made for _, made in self.members)


def called_by(constructors: Iterable[Expression]) -> list[str]:
    """The functions and classes that constructors call, each once, in order."""
    parts = chain.from_iterable(map(walk, constructors))
    return list(dict.fromkeys(e.function for e in parts if isinstance(e, Call)))


def called_in_turn(
    items: Expression, item: Value, inputs: Sequence[Expression], place: int, end: Value
) -> Loop:
    """`for item in items: x = item(x)`, where x is one of the inputs.

    place: of x among them. end: the last x.
    """
    carried, made = replace(end, hint="x"), replace(end, hint="x")
    given = (*inputs[:place], carried, *inputs[place + 1 :])
    body = Block([Assign((made,), (), ModuleCall(item, given))], [made])
    initial = (inputs[place],)
    return Loop(
        (end,), items=items, index=item, carried=(carried,), initial=initial, body=body
    )


def under(
    name: object, weights: Iterable[tuple[str, Weight]]
) -> list[tuple[str, Weight]]:
    """The weights of an attribute, by their paths from the attribute's owner."""
    return [(f"{name}.{path}", weight) for path, weight in weights]


def contained(root: ClassPlan, known: Mapping[str, ClassPlan]) -> list[ClassPlan]:
    """The known classes that a class contains at any depth, in their order."""

    def inside(plan: ClassPlan) -> list[ClassPlan]:
        return [known[name] for name in plan.calls() if name in known]

    found = set(demand_order(inside(root), inside))
    return [plan for plan in known.values() if plan in found]


def callee(made: Expression | None) -> str:
    """The function or class that an expression calls; "" where it is no call."""
    return made.function if isinstance(made, Call) else ""


def held(
    made: Expression | None, places: Sequence[str | int], base: str = "nn.Sequential"
) -> Expression | None:
    """An item of a constructed list or Sequential.

    base: what a class extends that calls the constructor of that.
    """
    if isinstance(made, Method):
        made = Call(base, made.args, made.options)
    for place in places:
        match made:
            case Call(
                function="nn.Sequential", args=(UnaryOp(operand=Repeat() as every),)
            ):
                made = every.item
            case (
                ListOrTuple(items=items) | Call(function="nn.Sequential", args=items)
            ) if isinstance(place, int) and place < len(items):
                made = items[place]
            case Repeat(item=item):
                made = item
            case _:
                return None
    return made


@dataclass(eq=False)
class Plan:
    """The classes, small to large, the model last, and where its weights belong.

    tables: what a file brings beside the model's state.
    """

    classes: list[ClassPlan]
    weights: list[tuple[str, Weight]]
    tables: list[tuple[str, Weight]] = field(default_factory=list)
