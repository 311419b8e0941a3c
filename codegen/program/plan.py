"""A whole program, and the classes that it is arranged in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from burnish.codegen.program.leaves import Expression, Shape, Value, Weight
from burnish.codegen.program.statements import Block


@dataclass(eq=False)
class Program:
    """A whole model: its inputs in order, its body, and what is told of it."""

    inputs: list[Value]
    optional: dict[Value, Any]
    body: Block
    output_names: list[str]
    outputs: list[tuple[str | None, Shape | None]]


@dataclass(eq=False)
class ClassPlan:
    """One class of the source: what it owns and what it computes.

    contract: the shapes that it takes and gives; about: what else is said about it.
    members: attribute and constructor, in order; parameters: the constructor's own,
    defaults: what those have by themselves. base: the class that it extends; what is
    made under the name "" calls that one's constructor. shared: what is another's
    in the end, and that one. divided: arguments, each with one that
    must divide it so many times.
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


@dataclass(eq=False)
class Plan:
    """The classes, small to large, the model last, and where its weights belong."""

    classes: list[ClassPlan]
    weights: list[tuple[str, Weight]]
