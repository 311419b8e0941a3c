"""Build classes from groups: equal bodies once, chains and repeats as containers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from burnish import nn
from burnish.codegen.arrange.analysis.shape_contracts import contract, merged
from burnish.codegen.arrange.analysis.structural_hash import outline_of_any_weights
from burnish.codegen.arrange.analysis.ties import extend_ties, reached
from burnish.codegen.arrange.classes.as_layer import (
    Declined,
    Note,
    Submodule,
    function_part,
)
from burnish.codegen.arrange.classes.attention_trial import AttentionForm
from burnish.codegen.arrange.classes.bind import (
    Body,
    Hints,
    Owner,
    Path,
    handed_of,
    homes_of,
    path_of,
)
from burnish.codegen.arrange.classes.branches import are_twins, entered, names_of
from burnish.codegen.arrange.classes.class_table import ClassTable
from burnish.codegen.arrange.classes.containers import (
    as_loop,
    as_sequential,
)
from burnish.codegen.arrange.classes.explain import Reasons, no_chain, no_loop
from burnish.codegen.arrange.classes.interface import Interfaces
from burnish.codegen.arrange.classes.members import Members, alike, uses_of, weights_say
from burnish.codegen.arrange.classes.multihead import attention, may_be, multihead
from burnish.codegen.arrange.classes.sequence_axes import with_lengths
from burnish.codegen.arrange.rerolling.statements import rolled
from burnish.codegen.arrange.scopes.demand import in_demand
from burnish.codegen.arrange.scopes.group_kind import (
    LISTS,
    class_word,
    extended,
    free_weights,
    function_word,
    holds_numbered,
    inner_layer,
    is_filled,
    is_function,
    is_rounded,
    is_transparent,
    numbered,
    singular,
)
from burnish.codegen.arrange.scopes.grouping import (
    Group,
    Item,
    grouped,
    is_rounding,
    leaves,
    part_of_list,
    scope_of,
    statements_of,
)
from burnish.codegen.names.identifier import Identifier
from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    If,
    Keyed,
    Layer,
    Level,
    ListOrTuple,
    Program,
    SelfAttr,
    Statement,
    Value,
    Weight,
    every_expression,
    held,
    pruned,
    under,
)
from burnish.codegen.weights.sharing import tied

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")


def _once(build: Callable[P, T]) -> Callable[P, T]:
    """A method of Builder that builds each of its arguments once: trials are free."""

    @wraps(build)
    def memoised(*args: P.args, **kwargs: P.kwargs) -> T:
        builder: Any = args[0]
        key = (build, *args[1:])
        if key not in builder.built:
            builder.built[key] = build(*args, **kwargs)
        return cast("T", builder.built[key])

    return memoised


class Builder:
    """Makes classes of the scopes of a program's statements.

    Building a group changes nothing but a table of what was built: equal classes are
    known there by their hash. What the model uses in the end is committed by `build`;
    the program stays as it is.

    names: those of attributes, by the layer's or weight's id. flat: one class.
    """

    def __init__(
        self, program: Program, names: dict[int, str], reasons: Reasons, flat: bool
    ):
        self.inputs = program.inputs
        self.block = Block(
            list(map(replace, program.body.statements)), program.body.results
        )
        self.flat = flat
        self.resorted = program.resorted
        self.reasons = reasons
        self.table = ClassTable()
        self.built: dict[tuple[object, ...], Submodule | Declined | None] = {}
        self.forms: dict[Hashable, AttentionForm | None] = {}
        self.interfaces = Interfaces.of(self.block)
        results = (r for r in self.block.results if isinstance(r, Weight))
        statements = self.block.statements
        self.hints = Hints(
            Counter([*free_weights(statements), *results]),
            homes_of(statements),
            handed_of(statements),
            uses_of(self.block),
            names if flat else _without_twins(names, self.block),
            set(tied(self.block)),
        )

    def build(self) -> tuple[list[ClassPlan], list[tuple[str, Weight]]]:
        """The classes, the model last, and the path of every weight."""
        items = grouped(self.block.statements, self.reasons.decide)
        if self.resorted:
            items = [in_demand(item) for item in items]
        body = self._body(items, self.block.results, self.hints.weight_uses, {}, ())
        model = body.members.plan("Model", self.inputs, body.block)
        contracts: dict[str, str] = {}
        words: dict[str, list[str]] = defaultdict(list)
        for note in body.notes:
            self.reasons.record(note)
            if note.contract:
                words[note.words].append(note.name)
                known = contracts.get(note.words, note.contract)
                contracts[note.words] = merged(known, note.contract)
        plans = [*self.table.used_by(model), model]
        for plan in plans:
            plan.contract = contracts.get(plan.name, plan.contract)
            plan.words = words[plan.name] if all(words[plan.name]) else []
        extend_ties(plans)
        return plans, body.members.weights

    # --- one class ---

    def _body(
        self,
        items: list[Item],
        results: list[Expression],
        uses: Counter[Weight],
        local: dict[Value, Expression],
        home: Path | None,
        extends: Layer | None = None,
    ) -> Body:
        """A module's body.

        home: the module's path in the author's tree. extends: the layer among the items
        that the class is.
        """
        body = Body()
        members, labels, notes = body.members, body.labels, body.notes
        if extends is not None:
            labels.names[id(extends)] = ""
        symbols = self.interfaces.symbols
        sizes = {v: replace(v, hint=symbols.get(v, v.hint)) for v in local}
        statements: list[Statement] = [
            Assign((sizes[value],), (), found) for value, found in local.items()
        ]
        for item in items if self.flat else extended(items):
            if isinstance(item, If) and not self.flat and are_twins(item):
                statements.append(self._twins(item, body))
            elif isinstance(item, Statement):
                statements.append(item)
            elif place := part_of_list(item.level):
                word = singular(place[0].partition(".")[0])
                listed = Group(replace(item.level, name=word), item.items)
                name = members.list_of(place[0])
                statements += self._placed(listed, name, place[1], body)
            elif is_transparent(item) or is_rounded(item):
                labels.names |= self._names_of_layers(item, item.level.name)
                notes.append(Note("is_little", "", scope_of(item)))
                statements += statements_of(item)
            elif holds_numbered(item):
                statements += self._container(item, body)
            elif item.level.name == "parametrizations" and is_filled(item):
                statements += self._parametrized(item, body)
            else:
                part = self._attention(item) or self._made(
                    item, class_word(item.level.name)
                )
                own = self._part_of(members, part) or members.add(
                    item.level.name, part.constructor, part.weights
                )
                statements += part.calls(own)
                notes += part.notes
        owner = Owner(self.hints, labels, members, uses, sizes, home)
        block = Block(statements, results).rebuilt(owner)
        body.block = pruned(block if self.flat else rolled(block))
        body.outside = owner.outside
        return body

    def _part_of(self, members: Members, part: Submodule) -> Expression | None:
        """`self.layers[2].net`: the module, where it is a part of a member."""
        path = members.holder_of(part.weights)
        if len(path) < 2:
            return None
        made = members.made_at(str(path[0]))
        for step in path[1:]:
            plan = self.table.plan(made)
            made = dict(plan.members).get(str(step)) if plan else held(made, [step])
        return reached(path) if made and alike(made, part.constructor) else None

    def _names_of_layers(self, group: Group, name: str) -> dict[int, str]:
        """Layers of a transparent group have its name, or that of their weights.

        Exporters leave a convolution in the scope of the norm that they folded into it.
        """
        names: dict[int, str] = {}
        for expression in leaves(group):
            if isinstance(expression, Layer) and not is_rounding(expression):
                held = map(id, expression.weights.values())
                alone = self.hints.tied.isdisjoint(held)
                attribute = weights_say(expression, group) if alone else None
                names[id(expression)] = attribute or name
        return names

    @_once
    def _made(self, group: Group, word: str, extends: Layer | None = None) -> Submodule:
        """A group as a class of its own, or as the Sequential that it was.

        word: the class's, if the file has none. extends: the layer that the class is,
        with functions around it.
        """
        if (sequence := self._named_sequence(group)) is not None:
            return sequence
        outputs = tuple(self.interfaces.outputs(group))
        inputs, local = self.interfaces.inputs(group)
        uses = Counter(free_weights(statements_of(group)))
        home = path_of(min((s.scope for s in statements_of(group)), key=len))
        body = self._body(group.items, list(outputs), uses, local, home, extends)
        declared = "" if group.level.kind in LISTS else group.level.kind
        kind = Identifier.class_name(class_word(declared) if declared else word)
        values = [*inputs, *body.outside.values()]
        plan = body.members.plan(kind, values, body.block)
        plan.contract = contract(values, outputs)
        with_lengths(plan)
        known = self.table.known(plan)
        given: tuple[Value | Weight, ...] = (*inputs, *body.outside)
        inside = set(statements_of(group))
        called = "" if declared else kind
        noted = Note("is_class", known, scope_of(group), plan.contract, called)
        notes = [*body.notes, noted]
        weights = body.members.weights
        return Submodule(Call(known), weights, given, outputs, inside, notes)

    def _parametrized(self, group: Group, body: Body) -> list[Statement]:
        """Parametrizations as a ModuleDict by the parameters' names."""
        name = group.level.name
        parts = {
            child.level.name: self._made(child, class_word(child.level.name))
            for child in group.items
            if isinstance(child, Group)
        }
        made = Keyed(tuple((key, part.constructor) for key, part in parts.items()))
        weights = [w for key, part in parts.items() for w in under(key, part.weights)]
        own = body.members.add(name, Call("nn.ModuleDict", (made,)), weights)
        body.notes += [note for part in parts.values() for note in part.notes]
        return [part.call(SelfAttr((*own.path, key))) for key, part in parts.items()]

    @_once
    def _attention(self, group: Group) -> Submodule | None:
        """A group that is PyTorch's attention, with its parameters' own names."""
        statements = statements_of(group)
        if not may_be(statements):
            return None
        inputs, local = self.interfaces.inputs(group)
        sizes = [Assign((value,), (), size) for value, size in local.items()]
        statements = [*sizes, *statements]
        outputs = self.interfaces.outputs(group)
        kind = outline_of_any_weights(statements, inputs, outputs)
        if kind not in self.forms:
            self.forms[kind] = multihead(statements, inputs, outputs)
        found = self.forms[kind]
        if found is None:
            return None
        return attention(statements, inputs, outputs, found)

    def _twins(self, statement: If, body: Body) -> If:
        """An If whose branches are equal modules with weights of their own."""
        names = names_of(statement)
        blocks = []
        for name, block in zip(names, statement.blocks(), strict=True):
            outputs = tuple(map(replace, statement.targets))
            inner = entered(block, name)
            part = self._branch(inner, outputs, class_word(names[0]))
            own = body.members.add(name, part.constructor, part.weights)
            body.notes += part.notes
            blocks.append(Block([part.call(own)], list(outputs)))
        return replace(statement, then=blocks[0], otherwise=blocks[1])

    def _branch(self, block: Block, outputs: tuple[Value, ...], kind: str) -> Submodule:
        """A branch as a class of its own."""
        ends = Assign((), (), ListOrTuple(tuple(block.results)))
        group = Group(Level(kind), [*block.statements, ends])
        inputs, local = self.interfaces.inputs(group)
        uses = Counter(free_weights(statements_of(group)))
        items = grouped(block.statements, self.reasons.decide)
        inside = copy(self)
        inside.interfaces = self.interfaces.inside(block)
        body = inside._body(items, block.results, uses, local, None)
        values = [*inputs, *body.outside.values()]
        plan = body.members.plan(Identifier.class_name(kind), values, body.block)
        plan.contract = contract(values, outputs)
        given: tuple[Value | Weight, ...] = (*inputs, *body.outside)
        known = self.table.known(plan)
        notes = [*body.notes, Note("is_branch", known, (), plan.contract)]
        weights = body.members.weights
        return Submodule(Call(known), weights, given, outputs, notes=notes)

    def _named_sequence(self, group: Group) -> Submodule | None:
        """A Sequential with named items, where the scope's class is one.

        So it is where a name is none that an attribute could have.
        """
        children = [item for item in group.items if isinstance(item, Group)]
        names = [self._item_name(child) for child in children]
        is_sequence = group.level.kind == "Sequential" or not all(
            name.replace(".", "").isidentifier() for name in names
        )
        if not is_sequence or len(children) < len(group.items):
            return None
        if len(set(names)) < len(names) or any(
            hasattr(nn.Sequential, n) for n in names
        ):
            return None
        parts = {
            name: self._part(c, class_word(name))
            for name, c in zip(names, children, strict=True)
        }
        whole = _all_modules(parts)
        if not whole or not self.interfaces.is_chain(list(whole.values())):
            return None
        return as_sequential(whole)

    def _item_name(self, group: Group) -> str:
        """An item's name: a layer's from its weights, else the scope's."""
        layers = [e for e in leaves(group) if isinstance(e, Layer)]
        if len(layers) == 1 and is_transparent(group):
            return weights_say(layers[0], group) or group.level.name
        return group.level.name

    # --- numbered children ---

    def _container(self, group: Group, body: Body) -> list[Statement]:
        """A list of modules: a loop over equals, a Sequential, or numbered calls."""
        name, members = group.level.name, body.members
        children = dict(numbered(group))
        if len(children) < len(group.items):
            return self._numbered(group, body)
        parts = self._parts(children, class_word(name))
        if whole := _all_modules(parts):
            entries = {n: (part.constructor, part.weights) for n, part in whole.items()}
            chain = list(whole.values())
            if self.interfaces.is_chain(chain):
                in_order = list(whole) == list(range(len(whole)))
                if not name and (sequence := as_sequential(whole)):
                    held = sequence.constructor, sequence.weights
                    body.notes += sequence.notes
                    return [sequence.call(members.add(name, *held))]
                if in_order and (loop := as_loop(chain, singular(name))):
                    body.notes += [note for part in chain for note in part.notes]
                    body.decide("a list and a loop, all alike", group)
                    return [loop(SelfAttr((members.add_list(name, entries),)))]
                if sequence := as_sequential(whole):
                    words = f"a Sequential and no loop, {no_loop(whole)}"
                    body.notes += sequence.notes
                    body.decide(words, group)
                    own = self._part_of(members, sequence) or members.add(
                        name, sequence.constructor, sequence.weights
                    )
                    return [sequence.call(own)]
        body.decide(f"a list, {no_chain(parts)}", group)
        return self._numbered(group, body)

    def _parts(
        self, children: dict[int, Group], word: str
    ) -> dict[int, Submodule | Declined]:
        """Numbered children as modules; functions, too, amid those of a Sequential."""
        parts = {n: self._part(child, word) for n, child in children.items()}
        declined = any(isinstance(part, Declined) for part in parts.values())
        if declined and self.interfaces.is_row(list(children.values())):
            for n, child in children.items():
                layer = inner_layer(child)
                fits = is_function(child) or layer is not None
                if fits and isinstance(parts[n], Declined):
                    parts[n] = self._made(
                        child, class_word(function_word(child)), layer
                    )
        return parts

    @_once
    def _part(self, child: Group, word: str) -> Submodule | Declined:
        """A numbered child as one module, where it is one."""
        declined = Declined("is more than one layer and no module")
        if is_transparent(child):
            statements = statements_of(child)
            found = function_part(statements[0]) if len(statements) == 1 else None
            return found or declined
        if holds_numbered(child):
            children = dict(numbered(child))
            if len(children) < len(child.items):
                return declined
            whole = _all_modules(self._parts(children, word))
            if whole and self.interfaces.is_chain(list(whole.values())):
                return as_sequential(whole) or declined
            return declined
        return self._made(child, word)

    def _numbered(self, group: Group, body: Body) -> list[Statement]:
        """Children called one by one, by their number in the list."""
        name = body.members.list_of(group.level.name)
        statements: list[Statement] = []
        for number, child in numbered(group):
            statements += self._placed(child, name, number, body)
        return statements

    def _placed(
        self, child: Group, name: str, number: int, body: Body
    ) -> list[Statement]:
        """One of a list's modules, called by its number."""
        if is_transparent(child):
            for expression in leaves(child):
                if isinstance(expression, Layer):
                    body.labels.places[id(expression)] = (name, number)
            return statements_of(child)
        word = class_word(name)
        part = self._attention(child) or self._part(child, word)
        if isinstance(part, Declined):
            part = self._made(child, word)
        own = body.members.place(name, number, part.constructor, part.weights)
        body.notes += part.notes
        return part.calls(own)


def _all_modules(parts: Mapping[K, Submodule | Declined]) -> dict[K, Submodule]:
    """The parts where each of them is a module, else none."""
    whole = {n: part for n, part in parts.items() if isinstance(part, Submodule)}
    return whole if len(whole) == len(parts) else {}


def _without_twins(names: Mapping[int, str], block: Block) -> dict[int, str]:
    """The layers' names but for branches that become modules: these name their own."""
    twins = (s for s in block.statements if isinstance(s, If) and are_twins(s))
    inside = {
        id(e) for twin in twins for b in twin.blocks() for e in every_expression(b)
    }
    return {layer: name for layer, name in names.items() if layer not in inside}
