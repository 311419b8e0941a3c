"""Turn TensorFlow's scope paths into a module tree.

Blocks that count up are a list: `conv2_block.0.conv1`, `encoder.layer.11.attention`.
Numbers that count through the whole model ("dense_5") begin anew in each of several
modules that are alike but for them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from burnish.codegen.names.identifier import Identifier
from burnish.codegen.ops import Trait, having
from burnish.codegen.program import Level, Scope
from burnish.codegen.tensorflow.blocks import alike, blocks_of

_COUNTED = re.compile(r"(.*?)_?(\d+)", re.ASCII)
_LETTERED = re.compile(r"(.*\d)([a-z])", re.ASCII)
_NORM = re.compile(r"(^|_)(bn|batch_?norm(alization)?)(_|\d|$)", re.IGNORECASE)
_VERSION = re.compile(r"_v\d+$")
_VIEWS = having(Trait.VIEW) | {"Cast"}
_COUNT = re.compile(r"_\d+$")


@dataclass(eq=False)
class Item:
    """An operator's path, what of it is still to be read, and the levels it becomes."""

    path: tuple[str, ...]
    word: str  #: the operator
    has_weights: bool
    rest: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()


def shaped(items: Sequence[Item]) -> set[Scope]:
    """Give each item its levels; those without weights end where there are some.

    The result: which scopes are blocks that only the names of their layers tell of.
    """
    for item in items:
        item.rest, item.levels = item.path, ()
    found: set[Scope] = set()
    _shape(items, "", found, in_list=False, renumber=False)
    ends: set[Scope] = {()} | {
        item.levels[:depth]
        for item in items
        if item.has_weights
        for depth in range(len(item.levels) + 1)
    }
    for item in items:
        while item.levels not in ends:
            item.levels = item.levels[:-1]
    return found


def _shape(
    items: Sequence[Item],
    parent: str,
    found: set[Scope],
    *,
    in_list: bool,
    renumber: bool,
) -> None:
    """The levels below those that the items have; `parent` is the innermost's name.

    in_list: the innermost is a list's element. renumber: names count anew. Blocks that
    were in a row go to `found`.
    """
    if renumber:
        _count_anew(items)
    cut = blocks_of(
        {n: any(i.has_weights for i in held) for n, held in _by_name(items).items()}
    )
    for item in items:
        if item.rest and item.rest[0] in cut:
            item.rest = (*cut[item.rest[0]], *item.rest[1:])
    blocks = {block for block, _ in cut.values()}
    children = _by_name(items)
    rows = _rows(_by_name(item for item in items if item.has_weights), blocks)
    lists = _lists(rows, children)
    alone = in_list and len(rows) == 1 and len(rows[0]) == len(children)
    renewed = _renewed(children)
    kinds = _kinds(children)
    for name, inside in children.items():
        for item in inside:
            item.rest = item.rest[1:]
        if name in lists:
            outer, number = lists[name]
            sole = _sole(inside)
            for item in inside if sole else ():
                item.rest = item.rest[1:]
            kind = _VERSION.sub("", sole) or kinds.get(name) or _kind(outer)
            kind = Identifier.class_name(kind)
            levels = (Level(outer), Level(str(number), kind))[alone:]
        else:
            kind = kinds.get(name) or (_kind(name) if name in blocks else "")
            kind = _known_kind(name, parent, inside) or kind
            levels = (Level(name, Identifier.class_name(kind) if kind else ""),)
        for item in inside:
            item.levels += levels
        if name in blocks and inside:
            found.add(inside[0].levels)
        anew = renumber or name in renewed
        _shape(inside, name, found, in_list=name in lists, renumber=anew)


def _by_name(items: Iterable[Item]) -> dict[str, list[Item]]:
    """The items of each scope, in the order in which the scopes are first entered."""
    found: dict[str, list[Item]] = {}
    for item in items:
        if item.rest:
            found.setdefault(item.rest[0], []).append(item)
    return found


def _tails(items: Iterable[Item]) -> set[tuple[str, ...]]:
    """The layers with weights below a scope."""
    return {item.rest for item in items if item.has_weights}


_Children = Mapping[str, Sequence[Item]]


def _form(items: Iterable[Item]) -> frozenset[tuple[str, ...]]:
    """A fingerprint of a scope with several parts, without its layers' numbers."""
    forms = {
        (*(_COUNT.sub("", part) for part in item.rest[1:]), item.word)
        for item in items
        if item.word not in _VIEWS
    }
    inner = any(len(tail) > 1 for tail in _tails(items))
    return frozenset(forms if inner else ())


def _renewed(children: _Children) -> set[str]:
    """Scopes that equal another one but for the numbers in their names."""
    alike: dict[object, list[str]] = defaultdict(list)
    for name, inside in children.items():
        alike[_bare(inside)].append(name)
    found: set[str] = set()
    for names in alike.values():
        several = [{tail[1:] for tail in _tails(children[name])} for name in names]
        if any(tails != several[0] for tails in several):
            found.update(names)
    return found


def _kinds(children: _Children) -> dict[str, str]:
    """The class of scopes that do the same: what their names have in common."""
    alike: dict[object, list[str]] = defaultdict(list)
    for name, inside in children.items():
        if form := _form(inside):
            alike[form].append(name)
    kinds: dict[str, str] = {}
    for names in alike.values():
        if len(names) > 1:
            kinds |= dict.fromkeys(names, _shared({_kind(name) for name in names}))
    return kinds


def _shared(kinds: set[str]) -> str:
    """The last word that several names share, else ""."""
    last = {kind.rpartition("_")[2] for kind in kinds}
    return next(
        iter(kinds if len(kinds) == 1 else last if len(last) == 1 else ["block"])
    )


# --- names ---


def _kind(stem: str) -> str:
    """The class of the blocks that a stem counts: "conv2_block" counts blocks."""
    words = re.sub(r"_?\d*[a-z]?$", "", stem) if stem[-2:-1].isdigit() else stem
    return re.split(r"\d", words.rstrip("0123456789_"))[-1].strip("_") or "block"


def _known_kind(name: str, parent: str, items: Sequence[Item]) -> str:
    """A class for a scope whose own name is vague: "output" of an attention."""
    words = {item.word for item in items if item.has_weights}
    if not any(item.rest for item in items):
        if _NORM.search(name) and words == {"Add", "Mul"}:
            return "batch_norm"
        return "separable_conv" if words == {"Conv"} else ""
    before = _COUNT.sub("", parent)
    if name == "self" and before:
        return f"self_{before}"
    if name in ("output", "body", "cell") and before:
        return f"{before}_{name}"
    if _COUNT.sub("", name) != "sequential":
        return ""
    return "MLP" if words <= {"Add", "Gemm", "MatMul"} else "stack"


def _sole(items: Sequence[Item]) -> str:
    """The one scope that all else is in: unit_1/bottleneck_v1 is a bottleneck."""
    inner = {item.rest[0] if item.rest else "" for item in items}
    return inner.pop() if len(inner) == 1 and len(_tails(items)) > 1 else ""


def _count_anew(items: Sequence[Item]) -> None:
    """Renumber Keras' counted names from the first in this scope."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in _by_name(items):
        names[_COUNT.sub("", name)].append(name)
    anew = {}
    for base, same in names.items():
        same.sort(key=lambda name: int(name[len(base) + 1 :] or 0))
        anew.update({n: f"{base}_{i}" if i else base for i, n in enumerate(same)})
    for item in items:
        if item.rest:
            item.rest = (anew[item.rest[0]], *item.rest[1:])


# --- lists ---


def _rows(children: Mapping[str, Sequence[Item]], blocks: set[str]) -> list[list[str]]:
    """Blocks that count up and follow each other, each row a list."""
    rows: list[list[str]] = []
    before: tuple[str, int] | None = None
    for name, inside in children.items():
        several = name in blocks or len(_tails(inside)) > 1
        stem, number = _counted(name)
        if not several:
            before = None
            continue
        same = before == (stem, number - 1) and alike(
            _bare(children[rows[-1][-1]]), _bare(inside)
        )
        if same:
            rows[-1].append(name)
        else:
            rows.append([name])
        before = (stem, number)
    return [row for row in rows if len(row) > 1]


def _bare(items: Iterable[Item]) -> frozenset[tuple[str, ...]]:
    """The layers with weights in a scope, whatever the numbers."""
    tails = (tail[1:] for tail in _tails(items))
    return frozenset(tuple(_COUNT.sub("", part) for part in tail) for tail in tails)


def _counted(name: str) -> tuple[str, int]:
    """A name's stem and number: block_3, block2c; 0 without a number."""
    if lettered := _LETTERED.fullmatch(name):
        return lettered[1], ord(lettered[2]) - ord("a")
    counted = _COUNTED.fullmatch(name)
    return (counted[1], int(counted[2])) if counted else (name, 0)


def _lists(
    rows: Sequence[Sequence[str]], children: Mapping[str, object]
) -> dict[str, tuple[str, int]]:
    """The list and the place of each block in a row; lists have names of their own."""
    found: dict[str, tuple[str, int]] = {}
    taken = set(children) - {name for row in rows for name in row}
    for row in rows:
        stem = _counted(row[0])[0]
        while stem in taken:
            stem = f"{stem}s"
        taken.add(stem)
        found.update({name: (stem, place) for place, name in enumerate(row)})
    return found
