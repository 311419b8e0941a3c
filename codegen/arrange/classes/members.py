"""The members of a class: attributes, their constructors, and the paths of weights."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from burnish import nn
from burnish.codegen.arrange.analysis.ties import reached
from burnish.codegen.arrange.classes.buffer_init import start
from burnish.codegen.arrange.scopes.group_kind import given_name, singular, without_rank
from burnish.codegen.arrange.scopes.grouping import Group, is_number, statements_of
from burnish.codegen.names import authorship
from burnish.codegen.names.identifier import Identifier, Names
from burnish.codegen.program import (
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Layer,
    ListOrTuple,
    Literal,
    Method,
    Name,
    Repeat,
    SelfAttr,
    UnaryOp,
    Value,
    Weight,
    callee,
    every_expression,
)

_RESERVED = frozenset(dir(nn.Module))
_BY_USE = re.compile(r"onnx::([A-Za-z]+)_\d+$|val_\d+$")
_USES = {"add": "bias", "sub": "mean", "mul": "scale", "div": "scale"}
_LOW = -50.0
"""Additive masks have this value or less where a key takes no part; biases that are
added to scores, such as those of distances, are smaller and are not called masks."""
_ATTENTION = "ops.scaled_dot_product_attention"
_OPERATORS = {"+": "bias", "-": "mean", "*": "scale", "/": "scale", "@": "weight"}
_SHORT = {
    "Linear": "linear",
    "PReLU": "prelu",
    "Embedding": "embed",
    "Dropout": "dropout",
    "FakeQuantize": "quant",
}

WeightPath = tuple[str, Weight]


@dataclass
class Members:
    """Attributes in the order of their use; a list attribute holds numbered parts."""

    single: dict[str, Expression] = field(default_factory=dict)
    numbered: dict[str, dict[int, Expression]] = field(default_factory=dict)
    weights: list[WeightPath] = field(default_factory=list)
    known: dict[Hashable, SelfAttr] = field(default_factory=dict)
    lists: dict[Hashable, str] = field(default_factory=dict)
    opened: dict[str, str] = field(default_factory=dict)
    names: Names = field(default_factory=lambda: Names(_RESERVED))

    def add(
        self, wanted: str, constructor: Expression, weights: list[WeightPath]
    ) -> SelfAttr:
        """A new attribute; its name is `wanted` where that is still free.

        A layer that is called again is not owned twice: it has the same weights, or
        none and the same name with a number ("dropout_1").
        """
        if not weights:
            base = authorship.without_count(wanted)
            if base in self.single and alike(self.single[base], constructor):
                return SelfAttr((base,))
        key = _identity(constructor, weights)
        if key in self.known:
            return self.known[key]
        name = self._free(wanted)
        self.single[name] = constructor
        self._own(name, weights)
        return self._made(key, SelfAttr((name,)))

    def _made(self, key: Hashable, own: SelfAttr) -> SelfAttr:
        if key is not None:
            self.known[key] = own
        return own

    def add_list(
        self, wanted: str, parts: dict[int, tuple[Expression, list[WeightPath]]]
    ) -> str:
        """A new list attribute of numbered parts; gaps become identities.

        A list that is called again is not owned twice.
        """
        every = [_identity(constructor, held) for constructor, held in parts.values()]
        key = None if None in every else tuple(every)
        if key in self.lists:
            return self.lists[key]
        name = self._free(wanted)
        if key is not None:
            self.lists[key] = name
        self.numbered[name] = {n: constructor for n, (constructor, _) in parts.items()}
        for number, (_, weights) in parts.items():
            self._own(f"{name}.{number}".strip("."), weights)
        return name

    def list_of(self, wanted: str) -> str:
        """The list of that name, new where there is none; "heads.0" is one in another.

        The result is what it is called in the end.
        """
        if wanted not in self.opened:
            outer, _, inner = wanted.rpartition(".")
            name = self._nested(outer, inner) if outer and is_number(inner) else None
            name = name or self._free(wanted)
            self.numbered[name] = {}
            self.opened[wanted] = name
        return self.opened[wanted]

    def _nested(self, outer: str, number: str) -> str | None:
        """A list's name as part of another; None where a module has that number."""
        name = self.list_of(outer)
        return None if int(number) in self.numbered[name] else f"{name}.{number}"

    def place(
        self,
        name: str,
        number: int,
        constructor: Expression,
        weights: list[WeightPath],
    ) -> SelfAttr:
        """A numbered part of a list attribute, or an attribute that exists already.

        A part that is called in two ways is two modules, one outside the list; so
        is one whose number a list has.
        """
        key = _identity(constructor, weights)
        if key in self.known:
            return self.known[key]
        if number in self.numbered[name] or f"{name}.{number}" in self.numbered:
            return self.add(singular(name) or "block", constructor, weights)
        self.numbered[name][number] = constructor
        self._own(f"{name}.{number}".strip("."), weights)
        first, *rest = name.split(".")
        return self._made(key, SelfAttr((first, *map(int, rest), number)))

    def path_of(self, weight: Weight) -> Expression | None:
        """`self.codebook.weight`: a weight that a module of its own has."""
        return next((_reached(path) for path, w in self.weights if w is weight), None)

    def holder_of(self, weights: list[WeightPath]) -> list[str | int]:
        """The path of a part of a member that has these weights; [] for none."""
        paths = {id(weight): path for path, weight in reversed(self.weights)}
        found = {
            paths[id(w)].removesuffix(path) if id(w) in paths else ""
            for path, w in weights
        }
        prefix = found.pop() if len(found) == 1 else ""
        return [int(p) if is_number(p) else p for p in prefix.split(".")[:-1]]

    def made_at(self, name: str) -> Expression | None:
        """The constructor of an attribute."""
        return self._list(name) if name in self.numbered else self.single.get(name)

    def plan(self, name: str, inputs: list[Value], block: Block) -> ClassPlan:
        """The class with these members; a member without a name is its base class."""
        listed = self.listed(block)
        nameless = self.single.get("")
        base = "nn.Module" if all(name for name, _ in listed) else "nn.Sequential"
        base = callee(nameless) or base
        shared = self.tied()
        return ClassPlan(name, listed, inputs, block, base=base, shared=shared)

    def tied(self) -> list[tuple[Expression, Expression]]:
        """Remove shared weights; the pairs of paths that share one.

        What parts of one list read in the same place were several weights: exporters
        merge equal ones.
        """
        first: dict[int, str] = {}
        pairs, kept = [], []
        for path, weight in self.weights:
            known = first.get(id(weight), path)
            if _unnumbered(known) != _unnumbered(path) and weight.trained:
                pairs.append((_reached(path), _reached(first[id(weight)])))
            else:
                first.setdefault(id(weight), path)
                kept.append((path, weight))
        self.weights = kept
        return pairs

    def _own(self, name: str, weights: list[WeightPath]) -> None:
        for path, weight in weights:
            self.weights.append((f"{name}.{path}".strip("."), weight))

    def _free(self, wanted: str) -> str:
        if wanted in ("", "self") and wanted not in self.names.taken:
            self.names.taken.add(wanted)
            return wanted
        return self.names.new(Identifier.attribute(wanted))

    def listed(self, block: Block) -> list[tuple[str, Expression]]:
        """Attributes and constructors in the order in which the block uses them."""
        used = [e.path[0] for e in every_expression(block) if isinstance(e, SelfAttr)]
        made = {
            name: self.single[name] if name in self.single else self._list(name)
            for name in dict.fromkeys(map(str, used))
        }
        nameless = made.pop("", None)  # before the others, so that numbers are places
        extended = [] if nameless is None else [("", extending(nameless))]
        return [*extended, *made.items()]

    def _list(self, name: str) -> Expression:
        """The list's parts; a number that no module has is an identity."""
        inner = [n for n in self.numbered if "." in n and n.rpartition(".")[0] == name]
        lists = {
            int(n.rpartition(".")[2]): self._list(n) for n in inner if self._holds(n)
        }
        parts = {**self.numbered[name], **lists}
        filled = [parts.get(n, Call("nn.Identity")) for n in range(max(parts) + 1)]
        first = filled[0]
        if len(filled) > 1 and all(_same(part, first) for part in filled):
            return Repeat(first, Literal(len(filled)))
        return ListOrTuple(tuple(filled))

    def _holds(self, name: str) -> bool:
        """Whether a module is in the list or in one of its lists."""
        return any(
            modules
            for other, modules in self.numbered.items()
            if f"{other}.".startswith(f"{name}.")
        )


def extending(made: Expression) -> Method:
    """`super().__init__(...)` of a class that is this layer, or has these layers."""
    args: tuple[Expression, ...] = (made,)
    options: tuple[tuple[str, Expression], ...] = ()
    match made:
        case Call(args=args, options=options):
            pass
        case ListOrTuple(items=args):
            pass
        case Repeat():
            args = (UnaryOp("*", made),)
    return Method(Name("super()"), "__init__", args, options)


def _identity(constructor: Expression, weights: list[WeightPath]) -> Hashable:
    """Equal for modules that are one: of one class, with the same weights."""
    if not weights or not isinstance(constructor, Call):
        return None
    held = [
        (path, id(w if w.trained or w.source is None else w.source))
        for path, w in weights
    ]
    return repr(spelled(constructor)), tuple(held)


def _unnumbered(path: str) -> list[str]:
    return ["#" if part.isdigit() else part for part in path.split(".")]


def _reached(path: str) -> Expression:
    return reached([int(p) if p.isdigit() else p for p in path.split(".")])


def alike(one: Expression, other: Expression) -> bool:
    """Equal constructors: the same class with the same sizes and options."""
    return (
        isinstance(one, Call)
        and isinstance(other, Call)
        and spelled(one) == spelled(other)
    )


def spelled(made: Call) -> tuple[object, ...]:
    """A constructor as plain values."""
    options = [(name, repr(value)) for name, value in made.options]
    return made.function, [repr(arg) for arg in made.args], options


def _same(one: Expression, other: Expression) -> bool:
    """Equal constructors of the source's own classes."""
    bare = isinstance(one, Call) and not (one.args or one.options)
    return bare and alike(one, other)


def constructor(layer: Layer) -> Call:
    """`nn.Kind(...)`"""
    options = tuple((name, Literal(value)) for name, value in layer.options.items())
    return Call(f"nn.{layer.kind}", tuple(map(Literal, layer.args)), options)


def stored(weight: Weight) -> Call:
    """A free weight: `nn.Param(...)` or `nn.Buffer(...)`."""
    shape = Literal(weight.shape)
    options: tuple[tuple[str, Expression], ...] = ()
    if weight.dtype != "float32":
        options = (("dtype", Literal(weight.dtype)),)
    if weight.trained:
        drawn = Call("nn.init.normal", (Literal(0.02),))
        return Call("nn.Param", (drawn, shape), options)
    if not weight.persistent:
        options += (("persistent", Literal(False)),)
    return Call("nn.Buffer", (start(weight), shape), options)


def layer_name(layer: Layer) -> str:
    """A layer's attribute, from its weights' names in the file or its kind."""
    kind = without_rank(layer.kind)
    return given_name(layer) or _SHORT.get(kind, Identifier.variable(kind))


def weights_say(layer: Layer, group: Group) -> str | None:
    """The layer's name in the path of its weights, where that is in the same module."""
    for weight in layer.weights.values():
        *outer, name, _ = ["", "", *weight.path.split(".")]
        beside = [
            s.scope[-2].name if len(s.scope) > 1 else "" for s in statements_of(group)
        ]
        if name.isidentifier() and all(outer[-1] == other for other in beside):
            return name
    return None


def weight_name(weight: Weight, use: str = "") -> str:
    """A free weight's attribute, from its name in the file or its use."""
    if weight.source is not None and weight.source.named:
        return weight.path.rpartition(".")[2]
    if use == "bias" and not weight.trained and is_mask(weight):
        return "mask"
    if not weight.trained and _BY_USE.match(weight.path or "val_0"):
        return "table"
    if by_use := _BY_USE.match(weight.path):
        return _USES.get((by_use[1] or "").lower(), use or "weight")
    *outer, last = weight.path.replace("/", ".").rstrip(".").split(".")
    made = not outer and (last in authorship.OPERATORS or authorship.is_made(last))
    if authorship.is_numbered(last) or made:
        return use or ("weight" if weight.trained else "table")
    name = Identifier.variable(last) if last else Identifier("weight")
    return "weight" if name[0] in "_n" and name.strip("_n").isdigit() else name


def is_mask(weight: Weight) -> bool:
    """Whether a table is an additive mask: 0, or one large negative number."""
    if weight.dtype not in ("float16", "float32", "float64"):
        return False
    values = np.unique(weight.read())
    return len(values) == 2 and values[1] == 0 and bool(values[0] <= _LOW)


def uses_of(block: Block) -> dict[Weight, str]:
    """A name for each free weight of a block, by its use."""
    found: dict[Weight, str] = {}
    for expression in every_expression(block):
        if isinstance(expression, Call) and expression.function == _ATTENTION:
            mask = dict(expression.options).get("attn_mask")
            if isinstance(mask, Weight):
                found.setdefault(mask, "bias")
        if isinstance(expression, BinOp) and expression.operator in _OPERATORS:
            for part in (expression.left, expression.right):
                if isinstance(part, Weight):
                    found.setdefault(part, _OPERATORS[expression.operator])
    return found
