"""Number the calls of a module that is called several times.

torch's newer exporter gives all calls one scope; the older one counts them in the name
of the module ("fc_1") and of its parts, each for itself. Weights tell them from other
modules: what reads the same ones in the same order is one module.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from burnish.codegen.arrange.scopes.grouping import (
    every_weight,
    leaves,
    module_of,
    weights_of,
)
from burnish.codegen.program import (
    Assign,
    BinOp,
    Call,
    Layer,
    Level,
    Method,
    Statement,
    UnaryOp,
    level_names,
)

_AGAIN = re.compile(r"(.+)_(\d+)")
_Path = tuple[str, ...]


def distinguish_calls(statements: Sequence[Statement]) -> None:
    """Number the calls of modules that are called several times, in place."""
    weights = {id(s): _weights_of(s) for s in statements}
    read = [key for s in statements if s.scope for key in weights[id(s)]]
    if len(set(read)) == len(read):
        return
    _without_counts(statements, weights)
    _join_uncalled(statements)
    _with_owners(statements)
    _split([s for s in statements if s.scope], 0, weights)


def _weights_of(statement: Statement) -> list[int]:
    """The ids of the trained weights that it reads, not what a layer is applied to."""
    layers = [each for each in leaves(statement) if isinstance(each, Layer)]
    applied = {id(each) for layer in layers for each in layer.inputs}
    return [key for key in weights_of(statement) if key not in applied]


# --- names that count ---


def _without_counts(
    statements: Sequence[Statement], weights: dict[int, list[int]]
) -> None:
    """Call "fc_1" "fc" where it is that module, called again."""
    below: dict[_Path, set[int]] = defaultdict(set)
    for statement in statements:
        path = level_names(statement.scope)
        for depth in range(1, len(path) + 1):
            below[path[:depth]].update(weights[id(statement)])
    counted = {
        path: (*path[:-1], found[1])
        for path in below
        if (found := _AGAIN.fullmatch(path[-1])) and (*path[:-1], found[1]) in below
    }
    again = {
        path
        for path, base in counted.items()
        if below[path] and below[path] <= below[base]
    }
    parents = {path[:depth] for path in again for depth in range(len(path))}
    for path, base in counted.items():
        if not below[path] and (base in parents or path[:-1] in parents):
            again.add(path)
    for statement in statements:
        path = level_names(statement.scope)
        statement.scope = tuple(
            replace(level, name=counted[path[: depth + 1]][-1])
            if path[: depth + 1] in again
            else level
            for depth, level in enumerate(statement.scope)
        )


# --- calls from outside of a module ---


def _join_uncalled(statements: Sequence[Statement]) -> None:
    """Make "layers.2.net" one level where something else than the layer calls it.

    torch's newer exporter says the classes of the modules that are called.
    """
    called = {
        level_names(s.scope)[: depth + 1]
        for s in statements
        for depth, level in enumerate(s.scope)
        if level.kind
    }
    for statement in statements:
        scope, path = statement.scope, level_names(statement.scope)
        inner = [
            depth
            for depth, level in enumerate(scope[:-1])
            if not level.kind and path[: depth + 1] in called
        ]
        if inner:
            end = inner[-1] + 1
            kinds = [depth for depth in range(inner[0]) if scope[depth].kind]
            start = kinds[-1] + 1 if kinds else 0
            joined = replace(scope[end], name=".".join(path[start : end + 1]))
            statement.scope = (*scope[:start], joined, *scope[end + 1 :])


def _with_owners(statements: Sequence[Statement]) -> None:
    """Make "net.0_1" a part of "layers.2.net" where the weights say so.

    The older exporter writes no more than "/net/net.0_1" where something else than the
    layer calls its part.
    """
    known = {
        level_names(s.scope)[:depth]
        for s in statements
        for depth in range(len(s.scope) + 1)
    }
    called: _Path = ()
    for statement in statements:
        path = level_names(statement.scope)
        modules = set(map(module_of, every_weight(statement)))
        if path and not modules and path[:1] == called[-1:]:
            counted = _AGAIN.fullmatch(path[-1])
            whole = (*called, *path[1:])
            if counted and whole not in known:
                whole = (*whole[:-1], counted[1])
        else:
            whole = modules.pop() if len(modules) == 1 else ()
        outer = len(whole) - len(path)
        is_around = whole[: len(path)] == path  # a hook of its part's, as weight norm's
        if outer < 1 or whole not in known or is_around:
            continue
        names = zip(path, whole[outer:], strict=True)
        if all(re.fullmatch(rf"{re.escape(w)}(_\d+)?", p) for p, w in names):
            called = whole[: outer + 1]
            entered = replace(statement.scope[0], name=".".join(called))
            inside = zip(statement.scope[1:], whole[outer + 1 :], strict=True)
            statement.scope = (entered, *(replace(v, name=n) for v, n in inside))


# --- calls ---


def _split(
    statements: list[Statement], depth: int, weights: dict[int, list[int]]
) -> None:
    """Number the calls of the modules at this depth, and of those inside them."""
    modules: dict[Level, list[Statement]] = defaultdict(list)
    for statement in statements:
        if len(statement.scope) > depth:
            modules[statement.scope[depth]].append(statement)
    for level, inside in modules.items():
        calls = _calls(inside, weights)
        is_own = any(len(s.scope) == depth + 1 for s in inside if weights[id(s)])
        is_one = is_own and not _are_alike(calls)
        if is_one or _is_a_part_called(calls, depth, weights):
            calls = [inside]
        for number, call in enumerate(calls):
            if number:
                own = replace(level, call=number)
                for statement in call:
                    scope = statement.scope
                    statement.scope = (*scope[:depth], own, *scope[depth + 1 :])
            _split(call, depth + 1, weights)


def _are_alike(calls: list[list[Statement]]) -> bool:
    """Whether each call does what the first does, or leaves out some of it.

    A module that reads a parameter of its own twice is no module that is called twice.
    """
    first, *others = (set(map(_what, call)) for call in calls)
    return all(first <= other or other <= first for other in others)


def _what(statement: Statement) -> str:
    """The function, the layer or the operator of a statement."""
    match statement:
        case Assign(
            expression=Call(function=what)
            | Layer(kind=what)
            | Method(name=what)
            | BinOp(operator=what)
            | UnaryOp(operator=what)
        ):
            return what
        case Assign(expression=expression):
            return type(expression).__name__
    return type(statement).__name__


def _is_a_part_called(
    calls: list[list[Statement]], depth: int, weights: dict[int, list[int]]
) -> bool:
    """Whether a part is called several times in one call of the module at this depth.

    One part has all weights, and the calls would not be of the same statements: what
    runs before the module's loop is in the first, what runs behind it in the last.
    """
    paths = [[level_names(s.scope)[depth + 1 :] for s in call] for call in calls]
    within = {
        path[:1]
        for call, of_call in zip(calls, paths, strict=True)
        for s, path in zip(call, of_call, strict=True)
        if weights[id(s)]
    }
    return len(within) == 1 and () not in within and any(p != paths[0] for p in paths)


def _calls(
    inside: list[Statement], weights: dict[int, list[int]]
) -> list[list[Statement]]:
    """A module's statements, cut where it begins to read the same weights again."""
    places = [i for i, s in enumerate(inside) if weights[id(s)]]
    words = [tuple(weights[id(inside[i])]) for i in places]
    count = words.count(words[0]) if words else 1
    length = len(words) // count
    if count == 1 or words != words[:length] * count:
        return [inside]
    behind = len(inside) - 1 - places[-1]
    cuts = [0]
    for number in range(1, count):
        last, first = places[number * length - 1], places[number * length]
        cuts.append(min(last + 1 + behind, first))
    ends = [*cuts[1:], len(inside)]
    return [inside[start:end] for start, end in zip(cuts, ends, strict=True)]
