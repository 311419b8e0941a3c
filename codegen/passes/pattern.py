"""Patterns over the Graph: written like the formula, matched from the root backwards.

    Rule("Gelu, erf form", x * 0.5 * (1 + op.Erf(x / SQRT2)), ...)

A name matches any value, the same one wherever it appears; a number matches a constant
of one element; commutative operators match both ways round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from burnish.codegen.ops import Trait, having
from burnish.codegen.passes import graph as g
from burnish.codegen.weights import constants

_COMMUTATIVE = having(Trait.COMMUTATIVE)
_VARIADIC = frozenset(("Concat", "Max", "Mean", "Min", "Sum"))
"""Each of their inputs counts; of others a pattern may leave out optional ones."""
#: Relative. Exporters write sqrt(2) as 1.4142 and as 1.41421354; a factor that is
#: further off belongs to another function.
_TOLERANCE = 1e-3


class Pattern:
    """Something that a value can match."""

    def __add__(self, other: Pattern | float) -> NodePattern:
        return op("Add", self, other)

    def __radd__(self, other: float) -> NodePattern:
        return op("Add", other, self)

    def __sub__(self, other: Pattern | float) -> NodePattern:
        return op("Sub", self, other)

    def __mul__(self, other: Pattern | float) -> NodePattern:
        return op("Mul", self, other)

    def __rmul__(self, other: float) -> NodePattern:
        return op("Mul", other, self)

    def __truediv__(self, other: Pattern | float) -> NodePattern:
        return op("Div", self, other)

    def __rtruediv__(self, other: float) -> NodePattern:
        return op("Div", other, self)

    def __pow__(self, other: Pattern | float) -> NodePattern:
        return op("Pow", self, other)


@dataclass(frozen=True)
class Any(Pattern):
    """Any value; the same name is the same value."""

    name: str


@dataclass(frozen=True)
class Number(Pattern):
    """A constant of one element near `number`."""

    number: float


@dataclass(frozen=True)
class Scalar(Pattern):
    """A constant of one element; the same name is the same number."""

    name: str


@dataclass(frozen=True)
class Table(Pattern):
    """A constant of several elements that does not train."""

    name: str


@dataclass(frozen=True)
class NodePattern(Pattern):
    """The first output of an operator of one of several kinds."""

    kinds: tuple[str, ...]
    inputs: tuple[Pattern, ...]
    name: str = ""  #: under which `Match.named` has the node
    domains: tuple[str, ...] = ("",)
    stays: bool = False  #: read by others too: it is none of `Match.nodes`


@dataclass(frozen=True)
class Either(Pattern):
    """One of several ways to write the same."""

    ways: tuple[Pattern, ...]


def either(*ways: Pattern) -> Either:
    """A pattern for several ways to write the same."""
    parts = [way.ways if isinstance(way, Either) else (way,) for way in ways]
    return Either(tuple(way for part in parts for way in part))


def op(
    kinds: str,
    *inputs: Pattern | float,
    name: str = "",
    domain: str | None = "",
    stays: bool = False,
) -> NodePattern:
    """An operator applied to patterns; kinds: "Max", or several: "Max|Min".

    domain: None for ONNX's and Burnish's.
    """
    domains = ("", "burnish") if domain is None else (domain,)
    given = tuple(p if isinstance(p, Pattern) else Number(float(p)) for p in inputs)
    return NodePattern(tuple(kinds.split("|")), given, name, domains, stays)


@dataclass(frozen=True)
class Match:
    """The values bound to names, and the nodes that were matched."""

    values: Mapping[str, ir.Value] = field(default_factory=dict)
    nodes: tuple[ir.Node, ...] = ()
    named: Mapping[str, ir.Node] = field(default_factory=dict)
    slack: int = 0  #: how many conditions may still not hold
    missed: str = ""

    def __getitem__(self, name: str) -> ir.Value:
        return self.values[name]

    def number(self, name: str) -> float:
        """The number in a constant of one element."""
        found = g.unwrap(g.scalar(self.values[name]))
        return found


Rewritten = ir.Node | list[ir.Node] | str
"""An operator, or the nodes that end in it; or why a match is no match after all."""


@dataclass(frozen=True)
class Rule:
    """A form that exporters write, and the operator that it is."""

    name: str
    pattern: Pattern
    rewrite: Callable[[Match], Rewritten]


def match(pattern: Pattern, value: ir.Value | None, found: Match) -> Iterator[Match]:
    """Every way in which `value` matches."""
    if value is None:
        return
    if isinstance(pattern, NodePattern):  # the most frequent first
        yield from _match_node(pattern, value, found)
    elif isinstance(pattern, Any):
        known = found.values.get(pattern.name)
        if known is None:
            values = {**found.values, pattern.name: value}
            yield Match(values, found.nodes, found.named, found.slack, found.missed)
        elif known is value:
            yield found
        elif found.slack:
            came = f"{known.name!r} and {value.name!r}"
            yield _but_for(found, f"one {pattern.name}", came)
    elif isinstance(pattern, Scalar):
        number, known = g.scalar(value), found.values.get(pattern.name)
        if number is not None and known is not None and g.scalar(known) == number:
            yield found
        elif number is not None:
            yield from match(Any(pattern.name), value, found)
    elif isinstance(pattern, Table):
        tensor = g.constant(value)
        if tensor is not None and tensor.size > 1 and not constants.trains(value):
            yield from match(Any(pattern.name), value, found)
    elif isinstance(pattern, Number):
        number = g.scalar(value)
        wanted = pattern.number
        if number is not None and abs(number - wanted) <= _TOLERANCE * abs(wanted):
            yield found
        elif number is not None and found.slack:
            yield _but_for(found, f"{wanted:g}", f"{number:g}")
    elif isinstance(pattern, Either):
        for way in pattern.ways:
            yield from match(way, value, found)


def _but_for(found: Match, expected: str, came: str) -> Match:
    missed = f"expected {expected}, got {came}"
    return replace(found, slack=found.slack - 1, missed=missed)


def _match_node(pattern: NodePattern, value: ir.Value, found: Match) -> Iterator[Match]:
    node = value.producer()
    if node is None or node.op_type not in pattern.kinds:
        return
    if node.domain not in pattern.domains:
        return
    count, wanted = len(node.inputs), len(pattern.inputs)
    if node.outputs[0] is not value or count < wanted:
        return
    if count > wanted and node.op_type in _VARIADIC:
        return
    known = pattern.stays or node in found.nodes
    nodes = found.nodes if known else (*found.nodes, node)
    named = {**found.named, pattern.name: node} if pattern.name else found.named
    start = Match(found.values, nodes, named, found.slack, found.missed)
    orders = [tuple(node.inputs[:wanted])]
    if node.op_type in _COMMUTATIVE:
        orders.append(orders[0][::-1])
    for order in orders:
        yield from _match_all(pattern.inputs, order, start)


def _match_all(
    patterns: tuple[Pattern, ...], values: tuple[ir.Value | None, ...], found: Match
) -> Iterator[Match]:
    if not patterns:
        yield found
        return
    for first in match(patterns[0], values[0], found):
        yield from _match_all(patterns[1:], values[1:], first)
