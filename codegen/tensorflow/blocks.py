"""Find blocks in a row of layers by their names: "conv2_block1_1_conv".

Keras names every layer of a model in one row. Layers whose names differ in one number
alone are blocks of one kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

_NUMBER = re.compile(r"\d+[a-z]?(?=_)", re.ASCII)
_FIRST = re.compile(r"(\d+)_(\w+)", re.ASCII)
_COUNTED_PART = re.compile(r"([A-Za-z]+\d*)_(\w*[A-Za-z])_(\d+)", re.ASCII)
_ALIKE = 0.5
"""Blocks of one kind have so much in common of what either has."""

_Rests = Mapping[str, set[str]]


class _Cut(NamedTuple):
    """A name cut at a number: "conv2_block", "1", "1_conv"."""

    stem: str
    number: str
    rest: str


def blocks_of(names: Mapping[str, bool]) -> dict[str, tuple[str, str]]:
    """The block of a name and its name there, for names (that have weights) of one."""
    reordered = _number_first(names)
    found = _blocks_of({reordered[name]: weighs for name, weighs in names.items()})
    return {name: found[reordered[name]] for name in names if reordered[name] in found}


def _number_first(names: Mapping[str, bool]) -> dict[str, str]:
    """Names with the number before the part, where each number has several parts.

    conv_dw_1, conv_pw_1, conv_dw_2, conv_pw_2 are conv_1_dw and so on.
    """
    parts: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for name, has_weights in names.items():
        if found := _COUNTED_PART.fullmatch(name):
            parts[found[1], found[3]][found[2]] = has_weights
    common = [key for key, several in parts.items() if sum(several.values()) > 1]
    numbers = Counter(stem for stem, _ in common)
    reordered = {
        f"{stem}_{part}_{number}": f"{stem}_{number}_{part}"
        for (stem, number) in common
        for part in parts[stem, number]
        if numbers[stem] > 1
    }
    made = {}
    for name in names:
        cuts = (m.start() for m in re.finditer(r"_|$", name))
        start = next((name[:cut] for cut in cuts if name[:cut] in reordered), "")
        made[name] = f"{reordered[start]}{name[len(start) :]}" if start else name
    return made


def _blocks_of(names: Mapping[str, bool]) -> dict[str, tuple[str, str]]:
    heavy = [name for name, has_weights in names.items() if has_weights]
    cuts = {name: _cuts(name) for name in heavy}
    families: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    below: dict[str, dict[str, None]] = defaultdict(dict)
    for chain in cuts.values():
        for outer, cut in zip(("", *(c.stem for c in chain)), chain, strict=False):
            families[cut.stem][cut.number].add(cut.rest)
            below[outer][cut.stem] = None
    blocks: dict[str, set[str]] = {}
    for stem in _best("", families, below)[1]:
        family = _family(families[stem])
        blocks.update({f"{stem}{number}": rests for number, rests in family.items()})
    _add_others(heavy, blocks)
    blocks = {b: rests for b, rests in blocks.items() if _is_contiguous(b, heavy)}
    longest = sorted(blocks, key=len, reverse=True)
    found = (
        (n, next((b for b in longest if n.startswith(f"{b}_")), "")) for n in names
    )
    return {n: (b, _part(n[len(b) :].strip("_"))) for n, b in found if b}


def _cuts(name: str) -> list[_Cut]:
    """Where a name can be cut: at a number behind a word, and something follows."""
    return [
        _Cut(name[: m.start()], m[0], name[m.end() + 1 :])
        for m in _NUMBER.finditer(name)
        if name[: m.start()].rstrip("_")[-1:].isalpha() and name[m.end() + 1 :]
    ]


def _family(numbers: _Rests) -> _Rests:
    """The blocks of a stem that are alike, {} where it has none."""
    full = {number: rests for number, rests in numbers.items() if len(rests) > 1}
    if len(full) < 2:
        return {}
    usual = Counter(map(frozenset, full.values())).most_common(1)[0][0]
    kept = {n: rests for n, rests in full.items() if alike(rests, usual)}
    return kept if len(kept) > 1 else {}


def _best(
    stem: str, families: Mapping[str, _Rests], below: Mapping[str, Iterable[str]]
) -> tuple[int, list[str]]:
    """The stems, `stem` or those below it, whose blocks save most names; how many."""
    family = _family(families.get(stem, {}))
    names = set().union(*family.values()) if family else set()
    own = sum(map(len, family.values())) - len(names)
    inner = [_best(each, families, below) for each in below.get(stem, ())]
    saved = sum(value for value, _ in inner)
    if own > saved:
        return own, [stem]
    return saved, [each for _, chosen in inner for each in chosen]


def _add_others(heavy: Sequence[str], blocks: dict[str, set[str]]) -> None:
    """Blocks without a counter, or single ones: "expanded_conv_project"."""
    known = set().union(*blocks.values()) if blocks else set()
    others: dict[str, set[str]] = defaultdict(set)
    for name in heavy:
        if not any(name.startswith(f"{block}_") for block in blocks):
            for place in (m.start() for m in re.finditer("_", name)):
                others[name[:place]].add(name[place + 1 :])
    for block, rests in others.items():
        if len(rests & known) > 1 and rests <= known:
            blocks[block] = rests


def _is_contiguous(block: str, heavy: Sequence[str]) -> bool:
    """Whether hardly another layer runs amid those of a block."""
    own = [place for place, name in enumerate(heavy) if name.startswith(f"{block}_")]
    return own[-1] - own[0] < 2 * len(own) - 1


def _part(rest: str) -> str:
    """A layer's name in its block: "1_conv" is "conv1"."""
    first = _FIRST.fullmatch(rest)
    return f"{first[2]}{first[1]}" if first else rest


def alike(one: Set[object], other: Set[object]) -> bool:
    """Whether two blocks have enough in common to be of one kind."""
    return len(one & other) >= _ALIKE * len(one | other)
