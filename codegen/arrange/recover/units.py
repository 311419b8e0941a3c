"""Units: segments of one form that recur, alone or in a row, become modules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from burnish.codegen.arrange.analysis.structural_hash import (
    outline,
    outline_of_any_size,
)
from burnish.codegen.arrange.analysis.tandem_repeats import (
    Run,
    best_run,
    places_of,
    recurring,
)
from burnish.codegen.arrange.recover.excitation import EXCITE, excitations
from burnish.codegen.arrange.recover.layer_roles import SEPARABLE_KINDS, Roles
from burnish.codegen.arrange.recover.motifs import (
    are_several,
    block_kind,
    conv_block,
    joined,
    with_norms,
)
from burnish.codegen.arrange.recover.regions import Regions
from burnish.codegen.arrange.recover.segments import Cuts, Segment, absorbed
from burnish.codegen.arrange.scopes.grouping import holds_weights, weights_of
from burnish.codegen.program import Flow, Statement, Value

_REACHES = (4, 8, 16, 32)
_BESIDE = 1 << 20
"""Places of units in branches start here, behind those of the graph's segments."""
BRANCHES = 1 << 22
"""Places of units side by side that are one list start here, behind all others."""
_LEAST_BRANCHES = 3
"""So many units side by side are a list."""
LEAST = 2
"""Dense layers of a unit; a module around a single layer only hides it."""
_CLASS = 4
"""How many statements a class has to save: what its own lines are worth."""
_APART = 8
"""The most segments of a word that recurs without being a run."""


@dataclass(eq=False)
class Unit:
    """Segments in a row that are one module, and how often their form recurs."""

    start: int
    segments: list[Segment]
    kind: str = ""
    times: int = 1

    @property
    def end(self) -> int:
        return self.start + len(self.segments)

    @property
    def statements(self) -> list[Statement]:
        return [s for segment in self.segments for s in segment.statements]

    def weights(self) -> tuple[int, ...]:
        """The unit's weights; units with equal weights are calls of one module."""
        return tuple(w for s in self.statements for w in weights_of(s))

    def changes_size(self) -> bool:
        before, after = self.segments[0].entry, self.segments[-1].exit
        return _sizes(before) != _sizes(after)


def repeated_units(cuts: Cuts, roles: Roles) -> list[Unit]:
    """The modules among the segments between single live tensors, in their order."""
    best: list[Unit] = []
    most = 0
    chosen: list[Segment] = []
    tried: set[Hashable] = set()
    for reach in _REACHES:
        plain = cuts.segments(reach)
        cut = tuple((*s.statements, None, s.entry, s.exit) for s in plain)
        if cut in tried:  # a longer reach often cuts as the shorter one did
            continue
        tried.add(cut)
        segments = _parts(plain, cuts.flow)
        for word, worth in ((_kind_or_form, 5), (_form, 4)):
            units = _units(
                segments, [word(segment, roles) for segment in segments], cuts.flow
            )
            if (saved := _saved(units) * worth) > most:  # kinds may still become one
                best, most, chosen = units, saved, segments
    best = _without_variants(best, cuts.statements)
    known = _of_known_kinds(best, chosen, roles)
    return sorted([*best, *known], key=lambda unit: unit.start)


def _of_known_kinds(
    units: Sequence[Unit], segments: Sequence[Segment], roles: Roles
) -> list[Unit]:
    """Separable convolutions that stand once, where other ones are modules."""
    known = {roles.kind(unit.statements) for unit in units} & set(SEPARABLE_KINDS)
    taken = {s for unit in units for s in unit.statements}
    return [
        Unit(place, [segment])
        for place, segment in enumerate(segments)
        if segment.weight >= LEAST
        and taken.isdisjoint(segment.statements)
        and roles.kind(segment.statements) in known
    ]


def repeated_regions(cuts: Cuts, roles: Roles, rest: Sequence[Statement]) -> list[Unit]:
    """The modules among statements that run side by side; larger ones go first."""
    segments: list[Segment] = []
    words: list[object] = []
    for chain in Regions(cuts, rest).chains():
        parts = _parts(chain, cuts.flow)
        segments += [*parts, Segment()]
        words += [*(_form(part, roles) for part in parts), object()]
    found = _units(segments, words, cuts.flow)
    taken: set[Statement] = set()
    kept: list[Unit] = []
    for unit in sorted(found, key=lambda unit: -len(unit.statements)):
        own = set(unit.statements)
        if taken.isdisjoint(own):
            kept.append(unit)
            taken |= own
    forms = Counter(outline_of_any_size(unit.statements) for unit in kept)
    kept = [u for u in kept if forms[outline_of_any_size(u.statements)] > 1]
    cuts.linked([segment for unit in kept for segment in unit.segments])
    for unit in kept:
        unit.start += _BESIDE
    return _without_variants(kept, cuts.statements)


def number_branches(units: Sequence[Unit], cuts: Cuts) -> None:
    """Let units of one form that read one value side by side be neighbours.

    Three or more, in the order in which their results are read.
    """
    place = {s: i for i, s in enumerate(cuts.statements)}
    rows: dict[tuple[Value | None, object], list[Unit]] = defaultdict(list)
    for unit in units:
        form = outline_of_any_size(unit.statements)
        if (entry := _only_entry(unit, cuts.flow)) is not None:
            rows[entry, form].append(unit)
    start = BRANCHES
    for (_, form), row in rows.items():  # a chain of two in each branch is its own list
        chained = any((unit.segments[-1].exit, form) in rows for unit in row)
        if len(row) < _LEAST_BRANCHES or chained:
            continue
        row.sort(key=lambda unit: min(_reads_of(unit, cuts.flow, place)))
        for unit in row:
            unit.start = start
            start = unit.end
        start += 1


def _only_entry(unit: Unit, flow: Flow) -> Value | None:
    """The only tensor that a unit reads, where others read its result."""
    inside = {*unit.statements}
    read = {v for s in inside for v in flow.reads[s] if not v.host}
    entries = [v for v in read if flow.maker.get(v) not in inside]
    return entries[0] if len(entries) == 1 and _readers(unit, flow) else None


def _reads_of(
    unit: Unit, flow: Flow, place: Mapping[Statement, int]
) -> Iterator[tuple[int, int]]:
    """Where a unit's result is read: the statement's place, and the operand's."""
    for reader in _readers(unit, flow):
        operands = [*map(id, flow.reads[reader])]
        yield place[reader], operands.index(id(unit.segments[-1].exit))


def _readers(unit: Unit, flow: Flow) -> Sequence[Statement]:
    end = unit.segments[-1].exit
    return () if end is None else flow.readers.get(end, ())


def single_motifs(
    cuts: Cuts, rest: Sequence[Statement], known: bool = False
) -> list[Unit]:
    """Blocks that need no repetition: excitations, and convolutions with their norms.

    A class of one convolution is worth it where there are several. Those in a row are
    neighbours. known: units have this class already.
    """
    units = [_motif(block, EXCITE) for block in excitations(rest, cuts.flow)]
    blocks = [block for s in rest if (block := conv_block(s, cuts.flow))]
    if known or are_several(blocks):
        units += [_motif(block, block_kind(block)) for block in blocks]
    cuts.linked([unit.segments[0] for unit in units])
    for number, unit in enumerate(units):
        unit.start = 2 * (_BESIDE + number)
    return units


def _motif(block: list[Statement], kind: str) -> Unit:
    return Unit(0, [Segment(block, exit=block[-1].targets[0])], kind)


def _parts(segments: list[Segment], flow: Flow) -> list[Segment]:
    return joined(with_norms(_trimmed(segments)), flow)


def _trimmed(segments: list[Segment]) -> list[Segment]:
    """Activations and the like belong to the segment before them."""
    return absorbed(
        segments,
        lambda _, segment: (
            not _holds(segment) and _sizes(segment.entry) == _sizes(segment.exit)
        ),
    )


def _sizes(value: Value | None) -> tuple[object, ...]:
    return () if value is None or value.shape is None else value.shape


def _units(segments: list[Segment], words: list[object], flow: Flow) -> list[Unit]:
    """The modules among the segments, in their order."""
    numbers: dict[object, int] = {}
    sequence = [numbers.setdefault(word, len(numbers)) for word in words]
    weights = [2 * segment.weight + _holds(segment) for segment in segments]
    units: list[Unit] = []
    used = len(numbers)

    def take(start: int, length: int, times: int) -> None:
        nonlocal used
        unit = Unit(start, segments[start : start + length], times=times)
        units.append(unit)
        for place in range(start, start + length):
            sequence[place] = used = used + 1

    little = {
        sequence[place]
        for place in range(len(segments))
        if not _is_enough(segments[place : place + 1])
    }
    while run := best_run(sequence, weights, little):
        start = _offset(segments, words, sequence, run)
        word = sequence[start : start + run.period]
        enough = _is_enough(segments[start : start + run.period])
        places = places_of(sequence, word)
        for place in places:
            if enough:
                take(place, run.period, len(places))
            else:
                sequence[place] = used = used + 1
    for apart, places in _apart(segments, sequence, flow):
        left = [p for p in places if sequence[p : p + len(apart)] == apart]
        if len(left) > 1 and not (len(set(apart)) == 1 and apart[0] in little):
            for place in left:
                take(place, len(apart), len(left))
    counted = Counter(sequence)
    for place, segment in enumerate(segments):
        times = counted[sequence[place]]
        if times > 1 and segment.weight >= LEAST:
            units.append(Unit(place, [segment], times=times))
    units.sort(key=lambda unit: unit.start)
    return units


def _apart(
    segments: Sequence[Segment], sequence: Sequence[int], flow: Flow
) -> list[tuple[Sequence[int], list[int]]]:
    """Words that recur apart from each other, and their places.

    Those that save most go first. Each is worth a class, and gives one value alone.
    """
    found: list[tuple[int, Sequence[int], list[int]]] = []
    for length, places in recurring(sequence, _APART):
        kept = [p for p in places if _gives_one(segments[p : p + length], flow)]
        if len(kept) < 2:
            continue
        part = segments[kept[0] : kept[0] + length]
        lines = (len(kept) - 1) * sum(len(s.statements) for s in part)
        if lines > _CLASS and _is_enough(part):
            found.append((lines, sequence[kept[0] : kept[0] + length], kept))
    found.sort(key=lambda each: (-each[0], -len(each[1]), each[2]))
    return [(word, places) for _, word, places in found]


def _gives_one(part: Sequence[Segment], flow: Flow) -> bool:
    """Whether only the last value of segments in a row is read by others."""
    inside = {s for segment in part for s in segment.statements}
    end = part[-1].exit
    return end is not None and not any(
        target is not end and flow.is_read_outside(target, inside)
        for statement in inside
        for target in statement.targets
    )


def _is_enough(segments: Sequence[Segment]) -> bool:
    """Whether they are worth a class: several layers, or one with own factors."""
    layers = sum(segment.weight for segment in segments)
    hold = sum(map(_holds, segments))
    return layers >= LEAST or (layers > 0 and hold > LEAST)


def _holds(segment: Segment) -> bool:
    return any(map(holds_weights, segment.statements))


def _kind_or_form(segment: Segment, roles: Roles) -> object:
    """The key by which segments are alike: a known kind of module, else their form."""
    kind = roles.kind(segment.statements) if segment.weight >= LEAST else "Block"
    return _form(segment, roles) if kind == "Block" else kind


def _form(segment: Segment, _: Roles) -> object:
    return outline_of_any_size(segment.statements)


def _offset(
    segments: list[Segment], words: list[object], sequence: Sequence[int], run: Run
) -> int:
    """Where in a run its word begins: with an attention if there is one.

    Else where most of the model's words begin, with a branch rather than without.
    """
    found = range(run.start, run.start + run.rest + 1)
    rich = [i for i in found if segments[i].weight >= LEAST]
    attends = [i for i in rich if words[i] == "Attention"]
    if attends or not run.rest:
        return next(iter([*attends, run.start]))
    times = {i: len(places_of(sequence, sequence[i : i + run.period])) for i in found}
    return max(found, key=lambda i: (times[i], i in rich))


def _saved(units: list[Unit]) -> int:
    """How many statements need not be written twice, less what classes cost."""
    seen: set[object] = set()
    saved = 0
    for unit in units:
        made = outline_of_any_size(unit.statements)
        saved += len(unit.statements) if made in seen else -_CLASS
        seen.add(made)
    return saved


def _without_variants(units: list[Unit], body: Sequence[Statement]) -> list[Unit]:
    """The units but for those that are one of several things done with their weights.

    A cell that takes one element of a sequence after the other is no module without
    the index; a loop says it.
    """
    inside = {s: unit.weights() for unit in units for s in unit.statements}
    owners: dict[int, set[object]] = defaultdict(set)
    for statement in body:
        for weight in weights_of(statement):
            owners[weight].add(inside.get(statement))
    ways: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for unit in units:
        ways[unit.weights()].add(outline(unit.statements)[0])
    return [
        unit
        for unit in units
        if len(ways[read := unit.weights()]) == 1
        and not (read and all(len(owners[weight]) > 1 for weight in read))
    ]


def in_program_order(units: Sequence[Unit], body: Sequence[Statement]) -> list[Unit]:
    """The units in the order of their first statements."""
    place = {s: i for i, s in enumerate(body)}
    return sorted(units, key=lambda unit: min(place[s] for s in unit.statements))
