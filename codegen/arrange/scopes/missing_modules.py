"""Add modules to scopes that only the weights' names have.

torch's older exporter writes the modules that are called. A ModuleDict, or a model
around a decoder that is called by its own name, is in the weights' names alone:
"/decoder/fc/Gemm" with "model.decoder.fc.weight". So are layers of a list whose
`forward` is called directly: "/encoder/fc_1/Gemm" with "encoder.layers.1.fc.weight";
the exporter numbers them as repeated calls of one module. Nodes that compute on a
module's weights before its call (weight norm) have no scope either.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from burnish.codegen.arrange.scopes.group_kind import free_weights, weights_of_layers
from burnish.codegen.arrange.scopes.grouping import module_of
from burnish.codegen.program import Level, Statement, Weight, level_names

_Path = tuple[str, ...]
_PARTS = "parametrizations"
_AGAIN = re.compile(r"(.+?)_(\d+)")


def with_uncalled(statements: Sequence[Statement]) -> None:
    """Give statements the scopes that their weights' names tell, in place."""
    _complete(statements)
    _to_owners(statements)


def _complete(statements: Sequence[Statement]) -> None:
    """Put the modules that are missing between those of the scopes."""
    reads = Counter(id(w) for s in statements for w in weights_of_layers(s))
    children: dict[tuple[_Path, str], set[_Path]] = defaultdict(set)
    for statement in statements:
        path = level_names(statement.scope)
        for weight in weights_of_layers(statement):
            if reads[id(weight)] == 1:
                number, known = _called(path, module_of(weight))
                for before, after in _aligned(known, module_of(weight)):
                    children[before, number].add(after)
        for weight in _free(statement):
            if _is_part(path, module_of(weight)):
                children[path, ""].add(module_of(weight))
    whole = {key: found.pop() for key, found in children.items() if len(found) == 1}
    for statement in statements:
        path = level_names(statement.scope)
        number, bare = _counted(path)
        depth = _known(whole, number, bare) if number else 0
        if depth:
            last = replace(statement.scope[-1], name=bare[-1])
            statement.scope = (*statement.scope[:-1], last)
        else:
            number, bare = "", path
            depth = _known(whole, number, bare)
        if depth and whole[bare[:depth], number] != bare[:depth]:
            rest = statement.scope[depth:]
            own = {level.name: level for level in statement.scope[:depth]}
            found = whole[bare[:depth], number]
            if _PARTS in found:
                own = {}  # what runs twice for one weight is no second call
            statement.scope = (*(own.get(n, Level(n)) for n in found), *rest)


def _known(whole: dict[tuple[_Path, str], _Path], number: str, path: _Path) -> int:
    """How many of the names are the longest beginning that is known to be in whole."""
    depths = range(len(path), 0, -1)
    return next((n for n in depths if (path[:n], number) in whole), 0)


def _called(path: _Path, module: _Path) -> tuple[str, _Path]:
    """The number of the call that a scope's last name has, which its module has not."""
    number, bare = _counted(path)
    is_count = number and module[-1:] == bare[-1:] and module[: len(bare)] != bare
    return (number, bare) if is_count else ("", path)


def _counted(path: _Path) -> tuple[str, _Path]:
    """The number at the end of the last name, and the names without it."""
    found = _AGAIN.fullmatch(path[-1]) if path else None
    return (found[2], (*path[:-1], found[1])) if found else ("", path)


def _aligned(path: _Path, module: _Path) -> Iterator[tuple[_Path, _Path]]:
    """What each beginning of a scope is in whole, where the module is that scope."""
    places: list[int] = []
    end = len(module)
    for name in reversed(path):
        inside = [i for i in range(end) if module[i] == name]
        if not inside or (not places and inside[-1] != len(module) - 1):
            return
        end = inside[-1]
        places.append(end)
    for depth, place in enumerate(reversed(places), 1):
        yield path[:depth], module[: place + 1]


def _is_part(path: _Path, module: _Path) -> bool:
    """Whether it is a parametrization, which runs under its number in a list."""
    *outer, parts, name = ["", "", *module]
    number = "".join(path[-1:])
    return (
        parts == _PARTS and number.isdigit() and ["", "", *path[:-1]] == [*outer, name]
    )


def _to_owners(statements: Sequence[Statement]) -> None:
    """Put what reads a module's own weights outside of it into the module.

    The module around may read a weight that the module itself reads.
    """
    scopes = {
        level_names(s.scope)[:n]: s.scope[:n]
        for s in statements
        for n in range(1, len(s.scope) + 1)
    }
    own = {
        weight
        for statement in statements
        for weight in _free(statement)
        if level_names(statement.scope) == module_of(weight)
    }
    for statement in statements:
        path = level_names(statement.scope)
        modules = {module_of(w) for w in _free(statement) if w not in own}
        if len(modules) == 1:
            module = modules.pop()
            inside = len(module) > len(path) and module[: len(path)] == path
            if inside and module in scopes:
                statement.scope = scopes[module]


def _free(statement: Statement) -> Iterator[Weight]:
    """The weights that it reads under a name that is their author's."""
    return (w for w in free_weights([statement]) if w.source and w.source.named)
