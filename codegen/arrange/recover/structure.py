"""Recover scopes where a graph has none: repeated subgraphs become modules.

segments   the graph is cut where a single tensor is live
regions    branches that run side by side are cut for themselves
units      segments of one form that recur, alone or in a row, are modules
motifs     so are some blocks that occur once: squeeze-and-excitation, conv + norm
roles      a unit is named after its contents, its layers after their roles
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from burnish.codegen.arrange.analysis.shape_contracts import size_of, symbol
from burnish.codegen.arrange.recover.excitation import EXCITE, excitations
from burnish.codegen.arrange.recover.layer_roles import INCEPTION, Roles
from burnish.codegen.arrange.recover.motifs import all_blocks, block_kind, count_blocks
from burnish.codegen.arrange.recover.segments import (
    Cuts,
    Segment,
    dense,
    expression,
    layers_of,
    on_host,
)
from burnish.codegen.arrange.recover.stages import explained, stages
from burnish.codegen.arrange.recover.units import (
    LEAST,
    Unit,
    in_program_order,
    number_branches,
    repeated_regions,
    repeated_units,
    single_motifs,
)
from burnish.codegen.arrange.scopes.group_kind import singular
from burnish.codegen.errors import Explain
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
    exchanged,
    pruned,
)


def structure(program: Program, explain: Explain) -> dict[int, str]:
    """Give statements scopes and an order; the layers' names, by their ids."""
    _ask_early(program)
    body = program.body
    cuts = Cuts(body)
    units = units_of(cuts)
    names = scoped(cuts, units, explain)
    rest = [s for s in body.statements if not s.scope]
    names |= Roles(cuts.flow).names(rest)
    count_blocks(body.statements, names)
    _name_head(rest, cuts.flow, names, bool(units))
    body.statements = together(body.statements, units, cuts.flow)
    return names


def units_of(cuts: Cuts) -> list[Unit]:
    """The modules among the statements, in their order."""
    roles = Roles(cuts.flow)
    best = repeated_units(cuts, roles)
    taken = {s for unit in best for s in unit.statements}
    rest = [s for s in cuts.statements if s not in taken]
    best += repeated_regions(cuts, roles, rest)
    for unit in best:
        unit.kind = roles.kind(unit.statements)
        if unit.kind in ("Attention", "MLP") and _branch(unit.segments[0], roles):
            unit.kind += "Block"
    taken = {s for unit in best for s in unit.statements}
    rest = [s for s in cuts.statements if s not in taken]
    inside = any(_conv_blocks(unit, cuts.flow) for unit in best)
    number_branches(best, cuts)
    motifs = single_motifs(cuts, rest, known=inside)
    return in_program_order([*best, *motifs], cuts.statements)


def scoped(cuts: Cuts, units: list[Unit], explain: Explain) -> dict[int, str]:
    """Give the units' statements scopes; the names of layers in them, by their ids."""
    roles = Roles(cuts.flow)
    names: dict[int, str] = {}
    for stage in stages(units, cuts.flow):
        read = dict.fromkeys(unit.weights() for unit in stage.units)
        modules = {weights: number for number, weights in enumerate(read)}
        for unit in stage.units:
            number = str(modules[unit.weights()])
            scope: Scope = (Level(stage.name), Level(number, unit.kind))
            if len(stage.units) == 1:
                scope = (Level(stage.name, unit.kind),)
            elif len(modules) == 1:
                scope = (Level(singular(stage.name), unit.kind),)
            _scope_inside(unit, scope, roles, names)
        explain(explained(stage))
    return names


def _ask_early(program: Program) -> None:
    """Read each named size from the shape of the first value that has it, once.

    Sizes of inputs are read at the start. One that a single statement reads stays where
    it is; others would be results of the module in which they are asked for.
    """
    flow = Flow(program.body)
    sources: dict[str, Value] = {}
    for value in program.inputs:
        _first_of_their_sizes([value], sources)
    of_inputs = set(sources)
    first: list[Statement] = []
    rest: list[Statement] = []
    known: dict[str, Value] = {}
    again: dict[Value, Expression] = {}
    for statement in program.body.statements:
        size = symbol(statement.expression) if isinstance(statement, Assign) else None
        shared = size in of_inputs or len(flow.readers_of(statement)) > 1
        if size in sources and shared and isinstance(statement, Assign):
            if size in known:
                again[statement.targets[0]] = known[size]
                continue
            known[size] = statement.targets[0]
            early = first if size in of_inputs else rest
            early.append(replace(statement, expression=size_of(sources[size], size)))
        else:
            rest.append(statement)
        _first_of_their_sizes(statement.targets, sources)
    body = Block([*first, *rest], program.body.results)
    if again:
        body = body.rebuilt(exchanged(again))
    program.body = pruned(body)  # of what was only asked for its size


def _first_of_their_sizes(values: Iterable[Value], known: dict[str, Value]) -> None:
    """Add the values that are the first with a named size."""
    for value in values:
        for size in value.shape or ():
            if isinstance(size, str):
                known.setdefault(size, value)


# --- scopes ---


def _scope_inside(
    unit: Unit, scope: tuple[Level, ...], roles: Roles, names: dict[int, str]
) -> None:
    """Scopes and names inside one unit."""

    def enter(statements: Sequence[Statement], level: Level) -> None:
        for statement in statements:
            statement.scope = (*statement.scope, level)
        names.update(roles.names(statements))

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
            enter(branch, Level(name, roles.kind(branch)))
    for number, block in enumerate(blocks := _excited(unit, roles.flow), 1):
        enter(block, Level(f"se{number}" if len(blocks) > 1 else "se", EXCITE))
    for number, block in enumerate(_conv_blocks(unit, roles.flow), 1):
        enter(block, Level(f"conv{number}", block_kind(block)))
    names |= roles.names([s for s in unit.statements if s.scope == scope])


def _conv_blocks(unit: Unit, flow: Flow) -> list[list[Statement]]:
    """An inception module's convolutions with their norms."""
    return all_blocks(unit.statements, flow) if unit.kind == INCEPTION else []


def _excited(unit: Unit, flow: Flow) -> list[list[Statement]]:
    """The unit's blocks of squeeze-and-excitation, unless it is one itself."""
    if unit.kind == EXCITE:
        return []
    blocks = excitations(unit.statements, flow)
    return [b for b in blocks if len({s.scope for s in b}) == 1]


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
    heads = [s for s in cone if segment.entry in roles.flow.reads[s] and not on_host(s)]
    if len(heads) == 1 and _is_norm(heads[0]):
        cone.remove(heads[0])
    convs = any(e.kind.startswith("Conv") for s in cone for e in layers_of(s))
    attends = bool(roles.attentions(cone))
    if sum(map(dense, cone)) < LEAST or (convs and not attends):
        return []
    return cone


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
    last = next(filter(layers_of, reversed(rest)), None)
    if last is None or not has_units or any(map(dense, flow.readers_of(last))):
        return
    first = layers_of(last)[0]
    if first.kind == "Linear":
        names[id(first)] = "head"


def together(
    statements: list[Statement], units: list[Unit], flow: Flow
) -> list[Statement]:
    """The statements with those of each unit together, in the unit's own order."""
    owners = {s: unit for unit in units for s in unit.statements}
    wanted: dict[Statement, None] = {}
    for statement in statements:
        unit = owners.get(statement)
        wanted |= dict.fromkeys(unit.statements if unit else [statement])
    return [*demand_order(wanted, flow.makers)]
