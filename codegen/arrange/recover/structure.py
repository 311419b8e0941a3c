"""Recover scopes for a graph without any: repeated subgraphs become modules.

segments   the graph is cut where a single tensor is live
tandem_repeats  segments of one form that recur, alone or in a row, are units
roles      a unit is named after its contents, its layers after their roles
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from burnish.codegen.arrange.analysis.fingerprint import form
from burnish.codegen.arrange.analysis.shape_contracts import has, size_of, symbol
from burnish.codegen.arrange.analysis.structural_hash import outline
from burnish.codegen.arrange.analysis.tandem_repeats import Run, best_run, places_of
from burnish.codegen.arrange.recover.layer_roles import Roles, expression, layers_of
from burnish.codegen.arrange.recover.segments import Cuts, Segment, dense
from burnish.codegen.arrange.scopes.group_kind import singular
from burnish.codegen.arrange.scopes.grouping import holds_weights, weights_of
from burnish.codegen.errors import Explain
from burnish.codegen.identifier import Identifier
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Expression,
    Flow,
    Layer,
    Level,
    Program,
    Scope,
    Statement,
    Value,
    demand_order,
)

_REACHES = (4, 8, 16, 32)
_LEAST = 2
"""Dense layers of a unit; a module around a single layer only hides it."""
_CLASS = 4
"""How many statements a class has to save: what its own lines are worth."""


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


def structure(program: Program, explain: Explain) -> dict[int, str]:
    """Give statements scopes and an order; the layers' names, by their ids."""
    _ask_inputs(program)
    body = program.body
    cuts = Cuts(body)
    roles = Roles(cuts.flow)
    best: list[Unit] = []
    most = 0
    for reach in _REACHES:
        segments = _trimmed(cuts.segments(reach))
        for word, worth in ((_kind_or_form, 5), (_form, 4)):
            units = _units(segments, [word(segment, roles) for segment in segments])
            if (saved := _saved(units) * worth) > most:  # kinds may still become one
                best, most = units, saved
    best = _without_variants(best, body.statements)
    for unit in best:
        unit.kind = roles.kind(unit.statements)
        if unit.kind in ("Attention", "MLP") and _branch(unit.segments[0], roles):
            unit.kind += "Block"
    names: dict[int, str] = {}
    for stage, numbered in _stages(best):
        read = dict.fromkeys(unit.weights() for unit in stage.units)
        modules = {weights: number for number, weights in enumerate(read)}
        for unit in stage.units:
            number = str(modules[unit.weights()])
            scope: Scope = (Level(stage.name), Level(number, unit.kind))
            if not numbered:
                scope = (Level(stage.name, unit.kind),)
            elif len(modules) == 1:
                scope = (Level(singular(stage.name), unit.kind),)
            _scoped(unit, scope, roles, names)
        explain(_explained(stage))
    rest = [s for s in body.statements if not s.scope]
    names |= roles.names(rest)
    _name_head(rest, cuts.flow, names, bool(best))
    body.statements = _ordered(body.statements, best, cuts.flow)
    return names


def _ask_inputs(program: Program) -> None:
    """Read each named size from the inputs' shapes once, at the start."""
    first: list[Statement] = []
    rest: list[Statement] = []
    known: dict[str, Value] = {}
    again: dict[Expression, Value] = {}
    for statement in program.body.statements:
        size = symbol(statement.expression) if isinstance(statement, Assign) else None
        source = next((v for v in program.inputs if size and has(v, size)), None)
        if size and source is not None and isinstance(statement, Assign):
            if size in known:
                again[statement.targets[0]] = known[size]
                continue
            known[size] = statement.targets[0]
            first.append(replace(statement, expression=size_of(source, size)))
        else:
            rest.append(statement)
    program.body = Block([*first, *rest], program.body.results)
    if again:
        program.body = program.body.rebuilt(lambda e: _with(e, again))


def _with(expression: Expression, values: Mapping[Expression, Value]) -> Expression:
    """The expression with other values in some places."""
    if expression in values:
        return values[expression]
    return expression.rebuilt(lambda child: _with(child, values))


# --- units ---


def _trimmed(segments: list[Segment]) -> list[Segment]:
    """Activations and the like belong to the segment before them."""
    kept: list[Segment] = []
    for segment in segments:
        plain = not any(map(holds_weights, segment.statements))
        if kept and plain and _sizes(segment.entry) == _sizes(segment.exit):
            kept[-1].statements += segment.statements
            kept[-1].exit = segment.exit
        else:
            kept.append(segment)
    return kept


def _sizes(value: Value | None) -> tuple[object, ...]:
    return () if value is None or value.shape is None else value.shape


def _units(segments: list[Segment], words: list[object]) -> list[Unit]:
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

    while run := best_run(sequence, weights):
        start = _offset(segments, words, run)
        word = sequence[start : start + run.period]
        enough = _is_enough(segments[start : start + run.period])
        places = places_of(sequence, word)
        for place in places:
            if enough:
                take(place, run.period, len(places))
            else:
                sequence[place] = used = used + 1
    counted = Counter(sequence)
    for place, segment in enumerate(segments):
        times = counted[sequence[place]]
        if times > 1 and segment.weight >= _LEAST:
            units.append(Unit(place, [segment], times=times))
    units.sort(key=lambda unit: unit.start)
    return units


def _is_enough(segments: Sequence[Segment]) -> bool:
    """Whether they are worth a class: several layers, or one with own factors."""
    layers = sum(segment.weight for segment in segments)
    hold = sum(map(_holds, segments))
    return layers >= _LEAST or (layers > 0 and hold > _LEAST)


def _holds(segment: Segment) -> bool:
    return any(map(holds_weights, segment.statements))


def _kind_or_form(segment: Segment, roles: Roles) -> object:
    """The key by which segments are alike: a known kind of module, else their form."""
    kind = roles.kind(segment.statements) if segment.weight >= _LEAST else "Block"
    return _form(segment, roles) if kind == "Block" else kind


def _form(segment: Segment, _: Roles) -> object:
    return form(segment.statements)


def _offset(segments: list[Segment], words: list[object], run: Run) -> int:
    """Where in a run its word begins: with a branch, an attention if there is one."""
    found = range(run.start, run.start + run.rest + 1)
    rich = [i for i in found if segments[i].weight >= _LEAST]
    attends = [i for i in rich if words[i] == "Attention"]
    return next(iter([*attends, *rich, run.start]))


def _saved(units: list[Unit]) -> int:
    """How many statements need not be written twice, less what classes cost."""
    seen: set[object] = set()
    saved = 0
    for unit in units:
        made = form(unit.statements)
        saved += len(unit.statements) if made in seen else -_CLASS
        seen.add(made)
    return saved


def _without_variants(units: list[Unit], body: Sequence[Statement]) -> list[Unit]:
    """The units but for those that are one of several things done with their weights.

    A cell that takes one element of a sequence after the other is no module without
    the index; a loop says it.
    """
    inside = {id(s): unit.weights() for unit in units for s in unit.statements}
    owners: dict[int, set[object]] = defaultdict(set)
    for statement in body:
        for weight in weights_of(statement):
            owners[weight].add(inside.get(id(statement)))
    ways: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for unit in units:
        ways[unit.weights()].add(outline(unit.statements)[0])
    return [
        unit
        for unit in units
        if len(ways[read := unit.weights()]) == 1
        and not (read and all(len(owners[weight]) > 1 for weight in read))
    ]


# --- stages ---


@dataclass
class Stage:
    """Units that follow each other, and the attribute that holds them."""

    units: list[Unit]
    name: str = ""


def _stages(units: Sequence[Unit]) -> list[tuple[Stage, bool]]:
    """The units by the lists that hold them; whether the stage is a list."""
    rows: list[list[Unit]] = []
    for unit in units:
        row = rows[-1] if rows else []
        follows = row and row[-1].end == unit.start and row[-1].kind == unit.kind
        if follows:
            row.append(unit)
        else:
            rows.append([unit])
    stages = [Stage(part) for row in rows for part in _by_size(row)]
    lists = [stage for stage in stages if len(stage.units) > 1]
    for number, stage in enumerate(lists, 1):
        stage.name = _list_name(stage, lists, number)
    single = Counter(s.units[0].kind for s in stages if len(s.units) == 1)
    seen: Counter[str] = Counter()
    for stage in stages:
        if not stage.name:
            kind = stage.units[0].kind
            seen[kind] += 1
            word = Identifier.variable(kind)
            stage.name = f"{word}{seen[kind]}" if single[kind] > 1 else word
    return [(stage, len(stage.units) > 1) for stage in stages]


def _by_size(row: list[Unit]) -> list[list[Unit]]:
    """Split a run of units before each unit that changes the size of its input."""
    parts: list[list[Unit]] = []
    for unit in row:
        if not parts or unit.changes_size():
            parts.append([unit])
        else:
            parts[-1].append(unit)
    several = [part for part in parts if len(part) > 1]
    return parts if 2 * len(several) >= len(parts) else [row]


def _list_name(stage: Stage, lists: list[Stage], number: int) -> str:
    kinds = [other.units[0].kind for other in lists]
    if kinds == ["EncoderLayer", "DecoderLayer"]:
        return "encoder" if number == 1 else "decoder"
    if len(lists) > 1:
        return f"stage{number}"
    return "layers" if kinds[0].endswith("Layer") else "blocks"


def _explained(stage: Stage) -> str:
    unit = stage.units[0]
    what = f"{len(unit.segments)} segments" if len(unit.segments) > 1 else "one segment"
    count = len(stage.units)
    return (
        f"structure: {stage.name} holds {count} {unit.kind}"
        f" ({len(unit.statements)} statements in {what}; the form occurs {unit.times}"
        " times)"
    )


# --- scopes ---


def _scoped(
    unit: Unit, scope: tuple[Level, ...], roles: Roles, names: dict[int, str]
) -> None:
    """Scopes and names inside one unit."""
    for statement in unit.statements:
        statement.scope = scope
    branches = [_branch(segment, roles) for segment in unit.segments]
    words = [roles.part(branch) for branch in branches if branch]
    several = Counter(words)
    seen: Counter[str] = Counter()
    for branch in branches:
        if branch:
            word = roles.part(branch)
            seen[word] += 1
            name = word if several[word] == 1 else _again(word, seen[word])
            kind = roles.kind(branch)
            for statement in branch:
                statement.scope = (*scope, Level(name, kind))
            names |= roles.names(branch)
    names |= roles.names([s for s in unit.statements if s.scope == scope])


def _again(word: str, number: int) -> str:
    if word == "attention":
        return "attention" if number == 1 else "cross_attention"
    return f"{word}{number}"


def _branch(segment: Segment, roles: Roles) -> list[Statement]:
    """Statements between a norm and the residual sum; [] where they are no module."""
    inside = set(segment.statements)
    for total in reversed(segment.statements):
        made = expression(total)
        if isinstance(made, BinOp) and made.operator == "+":
            break
    else:
        return []
    ends = [v for v in (made.left, made.right) if isinstance(v, Value)]
    inner = [v for v in ends if roles.flow.maker.get(v) in inside]
    if len(ends) != 2 or len(inner) != 1 or segment.entry is None:
        return []
    cone = _cone(inner[0], segment, roles.flow)
    heads = [
        s for s in cone if segment.entry in roles.flow.reads[s] and not _on_host(s)
    ]
    if len(heads) == 1 and _is_norm(heads[0]):
        cone.remove(heads[0])
    convs = any(e.kind.startswith("Conv") for s in cone for e in layers_of(s))
    attends = bool(roles.attentions(cone))
    if sum(map(dense, cone)) < _LEAST or (convs and not attends):
        return []
    return cone


def _on_host(statement: Statement) -> bool:
    return all(target.host for target in statement.targets)


def _cone(end: Value, segment: Segment, flow: Flow) -> list[Statement]:
    """The statements of a segment that a value comes from."""
    inside = set(segment.statements)
    found = set(
        demand_order(
            [flow.maker[end]], lambda s: [m for m in flow.makers(s) if m in inside]
        )
    )
    return [s for s in segment.statements if s in found]


def _is_norm(statement: Statement) -> bool:
    made = expression(statement)
    return isinstance(made, Layer) and made.kind.endswith("Norm")


def _name_head(
    rest: list[Statement], flow: Flow, names: dict[int, str], has_units: bool
) -> None:
    """The last layer of a model with modules is its head."""
    for statement in reversed(rest):
        found = list(layers_of(statement))
        if found and found[0].kind == "Linear":
            read = flow.readers_of(statement)
            if has_units and not any(map(dense, read)):
                names[id(found[0])] = "head"
        if found:
            return


def _ordered(
    statements: list[Statement], units: list[Unit], flow: Flow
) -> list[Statement]:
    """The statements with those of each unit together, in the unit's own order."""
    owners = {s: unit for unit in units for s in unit.statements}
    wanted: dict[Statement, None] = {}
    for statement in statements:
        unit = owners.get(statement)
        wanted |= dict.fromkeys(unit.statements if unit else [statement])
    return [*demand_order(wanted, flow.makers)]
