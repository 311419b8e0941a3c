"""Declare and look up rules (`@onnx_op`), and what they declare of operators.

A rule's signature is the operator's schema: inputs positional, attributes keyword-only
with the specification's defaults. A rule that must know more of its node (its opset,
how many outputs are asked for, their shapes) takes a last keyword `node`. Attributes
that several operators share are the keywords of one function: their rules have
`**options`, and name the function that they pass these to.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from burnish import ops
from burnish.codegen.extensions import installed
from burnish.codegen.ops.rule.costs import Macs
from burnish.codegen.ops.rule.traits import ANY, NONE, Trait, Twin
from burnish.codegen.ops.shapes import elementwise
from burnish.codegen.ops.shapes.dims import Rule as Shapes
from burnish.codegen.program import Block, Expression, Shape, Statement

Result = Expression | tuple[Expression | None, ...]

Roles = Mapping[int | str, str]
"""Names for arguments, by place or by option."""


@dataclass(frozen=True)
class NodeContext:
    """Facts of a node beside its inputs and attributes, for rules that need them."""

    name: str
    version: int
    outputs: tuple[str, ...]
    dtypes: tuple[str | None, ...]
    shapes: tuple[Shape | None, ...]
    lift_block: Callable[..., Block]
    emit: Callable[[Statement], None]
    on_input: str | None = None
    """How a recurrent layer rounds its input and its states."""


@dataclass(frozen=True)
class Rule:
    """One operator's import rule from opset version `since` on."""

    op_type: str
    domain: str
    since: int
    function: Callable[..., Result]
    when: Callable[[ir.Node], bool] | None = None
    traits: Trait = NONE
    shapes: Shapes | None = None
    twin: Twin | None = None
    macs: Macs | None = None
    role: str = ""
    argument_roles: Roles = field(default_factory=dict)
    weights: tuple[int, ...] = ()
    neutral: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether Burnish declares it, and not a user."""
        return self.function.__module__.startswith("burnish.codegen.ops.")

    @functools.cached_property
    def _options(self) -> dict[str, inspect.Parameter]:
        """The parameters for attributes, by the attributes' names.

        A parameter whose name would hide a builtin ends in an underscore.
        """
        parameters = inspect.signature(self.function).parameters.values()
        return {
            p.name.rstrip("_"): p
            for p in parameters
            if p.kind is p.KEYWORD_ONLY and p.name != "node"
        }

    @functools.cached_property
    def attributes(self) -> dict[str, str]:
        """The attributes that the rule honours, and its parameters for them."""
        return {name: p.name for name, p in self._options.items()}

    @functools.cached_property
    def arrays(self) -> frozenset[str]:
        """The attributes whose many elements the rule takes as an array."""
        options = self._options.items()
        return frozenset(name for name, p in options if "ndarray" in str(p.annotation))

    def default(self, attribute: str) -> Any:
        """What an attribute is where a node has none; None if it must have one."""
        default = self._options[attribute].default
        return None if default is inspect.Parameter.empty else default

    @functools.cached_property
    def wants_node(self) -> bool:
        return "node" in inspect.signature(self.function).parameters


registry: dict[tuple[str, str], list[Rule]] = {}
"""Rules by (domain, operator): users' before ours, the newest first."""


def onnx_op(
    op_type: str,
    since: int = 1,
    domain: str = "",
    when: Callable[[ir.Node], bool] | None = None,
    traits: Trait = NONE,
    shapes: Shapes | None = None,
    twin: Twin | None = None,
    macs: Macs | None = None,
    role: str = "",
    argument_roles: Roles | None = None,
    weights: tuple[int, ...] = (),
    neutral: float | None = None,
    options: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Declare the rule of an ONNX operator from opset version `since` on.

    when: the nodes that the rule answers for; others are expanded to the operator's
    definition. traits: what passes know of an operator of ONNX's or ours, whatever its
    version; the newest rule declares them. shapes: the sizes of its results, where its
    traits do not tell them. twin: the layer of the function that the rule calls. macs:
    the multiply-accumulates of a node, from shapes. role: a name for what the rule's
    function returns; argument_roles: names for what it is given. weights: which inputs
    a layer keeps as weights. neutral: the second operand that gives back the first.
    options: the function whose keywords the rule's `**options` are. A rule that a user
    declares goes before ours.
    """

    def register(function: Callable[..., Result]) -> Callable[..., Result]:
        if options is not None:
            vars(function)["__signature__"] = _with_keywords(function, options)
        rules = registry.setdefault((domain, op_type), [])
        declared = (when, traits, shapes, twin, macs, role, argument_roles or {})
        rule = Rule(op_type, domain, since, function, *declared, weights, neutral)
        rules.insert(0, rule)
        rules.sort(key=lambda rule: (rule.is_ours, -rule.since))
        return function

    return register


def _with_keywords(
    function: Callable[..., Result], options: Callable[..., Any]
) -> inspect.Signature:
    """A rule's signature with the keywords of a function in place of `**options`."""
    own, more = (inspect.signature(f).parameters.values() for f in (function, options))
    kept = {p.name: p for p in own if p.kind is not p.VAR_KEYWORD}
    taken = [p for p in more if p.kind is p.KEYWORD_ONLY and p.name not in kept]
    return inspect.Signature([*kept.values(), *taken])


GROUP = "burnish.operators"


def load_installed() -> None:
    """Have the rules of installed packages declared.

    Raises UsageError for a module that cannot be imported.
    """
    installed.modules(GROUP)


def find(domain: str, op_type: str, version: int) -> Rule | None:
    """The newest rule not above the opset version, or None."""
    load_installed()
    for rule in registry.get((domain, op_type), ()):
        if rule.since <= version:
            return rule
    return None


def has_rule(node: ir.Node, version: int) -> bool:
    """Whether the node has an import rule."""
    rule = find(node.domain, node.op_type, version)
    return rule is not None and (rule.when is None or rule.when(node))


# --- traits ---


def traits_of(domain: str, op_type: str) -> Trait:
    """The operator's traits, none for one without a rule that declares some."""
    rules = registry.get((domain, op_type), ())
    return next((rule.traits for rule in rules if rule.traits), NONE)


_SHAPES_BY_TRAIT: Mapping[Trait, Shapes] = {
    Trait.ELEMENTWISE | Trait.SAME_SHAPE: elementwise.same,
    Trait.BROADCAST: elementwise.spread,
    Trait.REDUCTION: elementwise.reduced,
    Trait.REDUCTION_TO_INDEX: elementwise.reduced_to_index,
}


def shapes_of(domain: str, op_type: str) -> Shapes | None:
    """The operator's shape transfer, None where ONNX's own inference knows it alone."""
    rules = registry.get((domain, op_type), ())
    for rule in rules:
        if rule.shapes:
            return rule.shapes
    traits = traits_of(domain, op_type)
    found = (rule for trait, rule in _SHAPES_BY_TRAIT.items() if trait & traits)
    return next(found, None)


def having(traits: Trait) -> frozenset[str]:
    """The operators of ONNX and of Burnish that have any of the traits."""
    return frozenset(
        op_type
        for domain, op_type in registry
        if domain in ("", "burnish") and traits_of(domain, op_type) & traits
    )


def weights_of(domain: str, op_type: str) -> tuple[int, ...]:
    """The inputs of an operator that a layer keeps as weights."""
    rules = registry.get((domain, op_type), ())
    return next((rule.weights for rule in rules if rule.weights), ())


def neutral_of(op_type: str) -> float | None:
    """The second operand with which an operator of ONNX gives back the first."""
    rules = registry.get(("", op_type), ())
    return next((rule.neutral for rule in rules if rule.neutral is not None), None)


def functions(traits: Trait) -> frozenset[str]:
    """The functions that operators with any of the traits become: "ops.relu".

    A rule that calls one of another name has it as its twin's.
    """
    rules = [r for each in registry.values() for r in each if r.traits & traits]
    names = {rule.function.__name__ for rule in rules}
    names |= {rule.twin.function for rule in rules if rule.twin}
    return frozenset(f"ops.{name}" for name in names if name in vars(ops)["__all__"])


def macs_of(domain: str, op_type: str) -> Macs | None:
    """The count of an operator's multiply-accumulates, None for one not counted."""
    rules = registry.get((domain, op_type), ())
    return next((rule.macs for rule in rules if rule.macs), None)


def macs_by_function() -> dict[str, Macs]:
    """The counts of functions of the runtime that have the name of their rule."""
    rules = [rule for each in registry.values() for rule in each]
    return {rule.function.__name__: rule.macs for rule in rules if rule.macs}


def twins(traits: Trait = ANY) -> dict[str, Twin]:
    """The layer twins of functions, by the functions' names: "ops.relu"."""
    rules = [r for each in registry.values() for r in each if r.traits & traits]
    return {f"ops.{r.twin.function}": r.twin for r in rules if r.twin}


def role_names() -> dict[str, str]:
    """Names for the results of functions, by the functions' names: "ops.softmax"."""
    rules = [r for each in registry.values() for r in each if r.role]
    return {
        f"ops.{r.twin.function if r.twin else r.function.__name__}": r.role
        for r in rules
    }


def argument_roles() -> dict[str, Roles]:
    """Names for the arguments of functions that have the name of their rule."""
    rules = [r for each in registry.values() for r in each if r.argument_roles]
    return {f"ops.{rule.function.__name__}": rule.argument_roles for rule in rules}
