"""Classify groups by shape and name: list, Sequential, function, transparent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from burnish.codegen.arrange.scopes.grouping import (
    Group,
    Item,
    is_number,
    is_rounding,
    leaves,
    module_of,
    statements_of,
)
from burnish.codegen.arrange.scopes.hoisting import common
from burnish.codegen.ops import twins
from burnish.codegen.program import (
    Assign,
    Call,
    Layer,
    Level,
    Method,
    Statement,
    Weight,
)

_GAPS = 8
"""The numbers for each module up to which a list may leave numbers out."""
LISTS = frozenset(("ModuleDict", "ModuleList", "Sequential"))
"""Container kinds, which say nothing about their contents."""


_COUNTS = re.compile(r"([_-]\d[0-9A-Za-z]*)+$")
"""Parts of a name that count modules, behind its words."""

_ONE = re.compile(r"(ss|is|(?<![cgt]p)us|alias|bias|canvas|lens|series)$")
"""Ends of words that are of one thing already."""

_PLURALS = tuple(
    (re.compile(f"{plural}$"), one)
    for plural, one in (
        (r"axes", "axis"),
        (r"(ind|vert)ices", r"\1ex"),
        (r"matrices", "matrix"),
        (r"(cook|mov)ies", r"\1ie"),
        (r"([a-z]{2})ies", r"\1y"),
        (r"([eo]ach|nch|rch|tch|sh|ss|x|alias|bias|lens)es", r"\1"),
        (r"s", ""),
    )
)
"""Ends of words for several, and what one has instead; the first that fits holds."""


def module_scope(statement: Statement) -> tuple[Level, ...]:
    """A statement's module; where its node has none, its layer's weights tell.

    A branch or loop belongs to the innermost module that holds all that is inside it:
    exporters write it under the name of its first node.
    """
    inside = [s for block in statement.blocks() for s in block.statements]
    scopes = [scope for scope in map(module_scope, inside) if scope]
    if scopes:
        own = statement.scope or scopes[0]
        return own[: min(common(own, scope) for scope in scopes)]
    if statement.scope:
        return statement.scope
    # an exporter that transposes a matrix counts it, and keeps the name of its bias
    named = map(named_module, weights_of_layers(statement))
    return tuple(map(Level, next(filter(None, named), ())))


def weights_of_layers(statement: Statement) -> Iterator[Weight]:
    """The weights that a statement reads through its layers."""
    layers = (e for e in leaves(statement) if isinstance(e, Layer))
    return (weight for layer in layers for weight in layer.weights.values())


def named_module(weight: Weight) -> tuple[str, ...]:
    """The path of the module in an author's name for a weight, else ()."""
    parts = module_of(weight)
    named = all(part.isidentifier() or part.isdigit() for part in parts)
    return parts if named else ()


def is_transparent(group: Group) -> bool:
    """Not a module of its own: one layer with its trimmings, or a plain function.

    What a table is looked up with is no part of the table's module, and what a layer
    is applied to no part of the layer's.
    """
    if any(isinstance(item, Group) for item in group.items):
        return False
    found = list(leaves(group))
    layers = [e for e in found if isinstance(e, Layer)]
    weights = [e for e in found if isinstance(e, Weight)]
    if len(layers) == 1:
        (layer,) = layers
        return all(w.dtype == "int64" or w in layer.inputs for w in weights)
    return not layers and not weights


def is_rounded(group: Group) -> bool:
    """One layer or a function with what rounds its numbers: a leaf before quantization.

    Without the roundings it is transparent; where it is called by name, so it is here.
    """
    if any(isinstance(item, Group) for item in group.items):
        return False
    found = list(leaves(group))
    layers = sum(isinstance(e, Layer) and not is_rounding(e) for e in found)
    return layers <= 1 and not any(isinstance(e, Weight) for e in found)


def is_filled(group: Group) -> bool:
    """Modules of different names and nothing else."""
    names = [item.level.name for item in group.items if isinstance(item, Group)]
    return len(set(names)) == len(group.items)


def is_function(group: Group) -> bool:
    """Statements that own nothing."""
    return not any(isinstance(e, Layer | Weight) for e in leaves(group))


def inner_layer(group: Group) -> Layer | None:
    """The one layer of a module that is this layer with functions around it."""
    layers = [e for e in leaves(group) if isinstance(e, Layer)]
    alone = len(layers) == 1 and is_transparent(group) and layers[0].weights
    free = any(isinstance(e, Weight) for e in leaves(group))
    return layers[0] if alone and not free else None


def function_word(group: Group) -> str:
    """The name of a class with functions: by its layer, else by its last step."""
    if (layer := inner_layer(group)) is not None:
        return layer.kind
    *_, last = statements_of(group)
    match last:
        case Assign(expression=Call(function=name)):
            return name.rpartition(".")[2]
        case Assign(expression=Method(name=name)):
            return name
    return "step"


def holds_numbered(group: Group) -> bool:
    """A list of modules: nothing but children whose names are numbers, few unused."""
    children = [item.level for item in group.items if isinstance(item, Group)]
    names = [level.name for level in children]
    distinct = {(level.name, level.call) for level in children}
    if len(names) < len(group.items) or len(distinct) < len(names):
        return False
    if not all(is_number(name) for name in names):
        return False
    return max(map(int, names), default=0) < _GAPS * (len(names) + 1)


def extended(items: Sequence[Item]) -> list[Item]:
    """Items; numbered modules and nothing else as those of a list without a name.

    A class with such a body extends Sequential.
    """
    whole = Group(Level(""), list(items))
    numbers = all(isinstance(i, Group) and is_number(i.level.name) for i in items)
    return [whole] if items and numbers and holds_numbered(whole) else list(items)


def numbered(group: Group) -> list[tuple[int, Group]]:
    """Numbered children with their number; a folded layer with that of its weights.

    A child that is called twice is listed twice.
    """
    children = [item for item in group.items if isinstance(item, Group)]
    declared = [_declared_number(child, group.level.name) for child in children]
    own = [int(child.level.name) for child in children]
    numbers = [own[i] if n is None else n for i, n in enumerate(declared)]
    if len(set(numbers)) < len(set(own)):
        numbers = own
    return list(zip(numbers, children, strict=True))


def _declared_number(child: Group, container: str) -> int | None:
    """The number in the path of a lone layer's weights: "features.0.weight"."""
    if is_transparent(child):
        for expression in leaves(child):
            if isinstance(expression, Layer):
                for weight in expression.weights.values():
                    *outer, number, _ = ["", "", *weight.path.split(".")]
                    if container in ("", outer[-1]) and is_number(number):
                        return int(number)
    return None


def given_name(layer: Layer) -> str:
    """The layer's name in that of a weight, "encoder.conv.weight"; "" without one."""
    names = (w.path.split(".")[-2:-1] for w in layer.weights.values())
    return next(
        (name for name in chain.from_iterable(names) if name.isidentifier()), ""
    )


def free_weights(statements: Iterable[Statement]) -> Iterator[Weight]:
    """The weights that statements read themselves, not through layers."""
    return (e for s in statements for e in leaves(s) if isinstance(e, Weight))


def without_rank(kind: str) -> str:
    """A layer's kind for any number of axes: Conv2d is a Conv."""
    return kind[:-2] if kind[-2:] in ("1d", "2d", "3d") else kind


def conv_word(kind: str, has_norm: bool, activation: str | None) -> str:
    """The class of a convolution block: "ConvBNReLU", "ConvTransposeBN".

    activation: the function's name; None for a block without one.
    """
    twin = twins().get(activation or "")
    own = twin.layer if twin else "" if activation is None else "Act"
    return without_rank(kind) + ("BN" if has_norm else "") + own


def class_word(name: str) -> str:
    """A class by its attribute; the source's own class is called Model already.

    What counts is left out: "block2-1" is a block, "Mixed_5b" a Mixed.
    """
    name = _COUNTS.sub("", name) or name
    word = name if name[:1].isupper() else singular(name or "block")
    return "network" if word.lower() == "model" else word


def singular(name: str) -> str:
    """The word for one of several modules, without a number: `queries` is a `query`."""
    bare = name.rstrip("0123456789_") or name
    if len(bare) < 4 or _ONE.search(bare):
        return bare
    tried = (plural.subn(one, bare) for plural, one in _PLURALS)
    return next((word for word, count in tried if count), bare)
