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

from burnish.codegen.arrange.scopes.grouping import weights_of
from burnish.codegen.program import Level, Scope, Statement

_AGAIN = re.compile(r"(.+)_(\d+)")
_Path = tuple[str, ...]


def distinguish_calls(statements: Sequence[Statement]) -> None:
    """Number the calls of modules that are called several times, in place."""
    weights = {id(s): weights_of(s) for s in statements}
    read = [key for s in statements if s.scope for key in weights[id(s)]]
    if len(set(read)) == len(read):
        return
    _without_counts(statements, weights)
    _split([s for s in statements if s.scope], 0, weights)


# --- names that count ---


def _without_counts(
    statements: Sequence[Statement], weights: dict[int, list[int]]
) -> None:
    """Call "fc_1" "fc" where it is that module, called again."""
    below: dict[_Path, set[int]] = defaultdict(set)
    for statement in statements:
        path = _path(statement.scope)
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
        path = _path(statement.scope)
        statement.scope = tuple(
            replace(level, name=counted[path[: depth + 1]][-1])
            if path[: depth + 1] in again
            else level
            for depth, level in enumerate(statement.scope)
        )


def _path(scope: Scope) -> _Path:
    return tuple(level.name for level in scope)


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
        if _is_a_part_called(calls, depth, weights):
            calls = [inside]
        for number, call in enumerate(calls):
            if number:
                for statement in call:
                    own = replace(level, call=number)
                    before, after = (
                        statement.scope[:depth],
                        statement.scope[depth + 1 :],
                    )
                    statement.scope = (*before, own, *after)
            _split(call, depth + 1, weights)


def _is_a_part_called(
    calls: list[list[Statement]], depth: int, weights: dict[int, list[int]]
) -> bool:
    """Whether a part is called several times in one call of the module at this depth.

    One part has all weights, and the calls would not be of the same statements: what
    runs before the module's loop is in the first, what runs behind it in the last.
    """
    paths = [[_path(s.scope)[depth + 1 :] for s in call] for call in calls]
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
