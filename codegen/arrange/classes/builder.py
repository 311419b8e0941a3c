"""Build classes from groups: equal bodies once, chains and repeats as containers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from burnish import nn
from burnish.codegen.arrange.analysis.schedule import as_needed
from burnish.codegen.arrange.analysis.shape_contracts import (
    contract,
    merged,
    sizes_of,
    symbol,
)
from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.arrange.analysis.ties import extend_ties
from burnish.codegen.arrange.classes.as_layer import Submodule, function_part
from burnish.codegen.arrange.classes.bind import Hints, Owner
from burnish.codegen.arrange.classes.branches import are_twins, enter, names_of
from burnish.codegen.arrange.classes.containers import (
    as_loop,
    as_named_sequential,
    as_sequential,
)
from burnish.codegen.arrange.classes.explain import Reasons, no_chain, no_loop
from burnish.codegen.arrange.classes.members import (
    Members,
    uses_of,
    weights_say,
)
from burnish.codegen.arrange.classes.multihead import attention, may_be
from burnish.codegen.arrange.classes.reroll import rolled
from burnish.codegen.arrange.classes.sequence_axes import number_of_places, with_lengths
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
    is_transparent,
    numbered,
    singular,
)
from burnish.codegen.arrange.scopes.grouping import (
    Group,
    Item,
    grouped,
    leaves,
    operands_of,
    part_of_list,
    scope_of,
    statements_of,
    targets_of,
)
from burnish.codegen.identifier import Identifier
from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    Flow,
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
    pruned,
)
from burnish.codegen.weights.sharing import tied


class Builder:
    """Makes classes of the scopes of a program's statements.

    names: those of attributes, by the layer's or weight's id. flat: one class.
    """

    def __init__(
        self, program: Program, names: dict[int, str], reasons: Reasons, flat: bool
    ):
        self.program = program
        self.flat = flat
        self.reasons = reasons
        self.classes: dict[str, ClassPlan] = {}
        self.wanted: Counter[str] = Counter()
        self.flow = Flow(program.body)
        self.symbols: dict[Value, str] = {}
        self.places: dict[Value, tuple[Value, Expression]] = {}
        for statement in program.body.statements:
            if isinstance(statement, Assign) and (size := symbol(statement.expression)):
                self.symbols[statement.targets[0]] = size
            if isinstance(statement, Assign) and (
                number := number_of_places(statement)
            ):
                self.places[statement.targets[0]] = number, statement.expression
        self.hints = Hints(
            Counter(free_weights(program.body.statements)),
            uses_of(program.body),
            names,
        )
        self.hints.tied.update(tied(program.body))
        self.hints.weight_uses.update(
            r for r in program.body.results if isinstance(r, Weight)
        )

    def build(self) -> tuple[list[ClassPlan], list[tuple[str, Weight]]]:
        """The classes, the model last, and the path of every weight."""
        items = grouped(self.program.body.statements, self.reasons.decide)
        results = self.program.body.results
        members, block, _ = self._body(items, results, self.hints.weight_uses, {})
        model = members.plan("Model", self.program.inputs, block)
        plans = [*self.classes.values(), model]
        extend_ties(plans)
        return plans, members.weights

    def _outputs(self, group: Group) -> list[Value]:
        """The values of a group that are read outside of it."""
        inside = set(statements_of(group))
        return [v for v in targets_of(group) if self.flow.is_read_outside(v, inside)]

    # --- one class ---

    def _body(
        self,
        items: list[Item],
        results: list[Expression],
        uses: Counter[Weight],
        local: dict[Value, Expression],
    ) -> tuple[Members, Block, dict[Weight, Value]]:
        """A module's parts, its statements calling them, and weights from outside."""
        members = Members()
        names = {value: self.symbols.get(value, value.hint) for value in local}
        sizes = {value: replace(value, hint=name) for value, name in names.items()}
        statements: list[Statement] = [
            Assign((sizes[value],), (), found) for value, found in local.items()
        ]
        for item in items if self.flat else extended(items):
            if isinstance(item, If) and not self.flat and are_twins(item):
                statements.append(self._twins(item, members))
            elif isinstance(item, Statement):
                statements.append(item)
            elif place := part_of_list(item.level):
                word = singular(place[0].partition(".")[0])
                listed = Group(replace(item.level, name=word), item.items)
                name = members.list_of(place[0])
                statements += self._placed(listed, name, place[1], members)
            elif is_transparent(item):
                self._name_layers(item, item.level.name)
                self.reasons.is_little(scope_of(item))
                statements += statements_of(item)
            elif holds_numbered(item):
                statements += self._container(item, members)
            elif item.level.name == "parametrizations" and is_filled(item):
                statements += self._parametrized(item, members)
            else:
                part = self._attention(item) or self._made(item, item.level.name)
                own = members.add(item.level.name, part.constructor, part.weights)
                statements += part.calls(own)
        owner = Owner(self.hints, members, uses, sizes)
        block = Block(statements, results).rebuilt(owner)
        block = pruned(block if self.flat else rolled(block))
        return members, block, owner.outside

    def _name_layers(self, group: Group, name: str) -> None:
        """Layers of a transparent group have its name, or that of their weights.

        Exporters leave a convolution in the scope of the norm that they folded into it.
        """
        for expression in leaves(group):
            if isinstance(expression, Layer):
                held = map(id, expression.weights.values())
                alone = self.hints.tied.isdisjoint(held)
                attribute = weights_say(expression, group) if alone else None
                self.hints.name(expression, attribute or name)

    def _made(self, group: Group, name: str) -> Submodule:
        """A group as a class of its own, or as the Sequential that it was."""
        if (sequence := self._named_sequence(group)) is not None:
            return sequence
        outputs = tuple(self._outputs(group))
        inputs, local = self._inputs(group)
        uses = Counter(free_weights(statements_of(group)))
        members, block, outside = self._body(group.items, list(outputs), uses, local)
        values = [*inputs, *outside.values()]
        declared = "" if group.level.kind in LISTS else group.level.kind
        kind = Identifier.class_name(class_word(declared or name))
        plan = members.plan(kind, values, block)
        plan.contract = contract(values, outputs)
        with_lengths(plan)
        known = self._known(plan)
        given: tuple[Value | Weight, ...] = (*inputs, *outside)
        self.reasons.is_class(known, scope_of(group))
        return Submodule(
            Call(known), members.weights, given, outputs, set(statements_of(group))
        )

    def _parametrized(self, group: Group, members: Members) -> list[Statement]:
        """Parametrizations as a ModuleDict by the parameters' names."""
        name = group.level.name
        parts = {
            child.level.name: self._made(child, child.level.name)
            for child in group.items
            if isinstance(child, Group)
        }
        made = Keyed(tuple((key, part.constructor) for key, part in parts.items()))
        weights = [
            (f"{key}.{path}", weight)
            for key, part in parts.items()
            for path, weight in part.weights
        ]
        own = members.add(name, Call("nn.ModuleDict", (made,)), weights)
        return [part.call(SelfAttr((*own.path, key))) for key, part in parts.items()]

    def _attention(self, group: Group) -> Submodule | None:
        """A group that is PyTorch's attention, with its parameters' own names."""
        statements = statements_of(group)
        if not may_be(statements):
            return None
        inputs, local = self._inputs(group)
        sizes = [Assign((value,), (), size) for value, size in local.items()]
        return attention([*sizes, *statements], inputs, self._outputs(group))

    def _twins(self, statement: If, members: Members) -> If:
        """An If whose branches are equal modules with weights of their own."""
        names = names_of(statement)
        blocks = []
        for name, block in zip(names, statement.blocks(), strict=True):
            outputs = tuple(map(replace, statement.targets))
            enter(block, name)
            part = self._branch(block, outputs, class_word(names[0]))
            own = members.add(name, part.constructor, part.weights)
            blocks.append(Block([part.call(own)], list(outputs)))
        return replace(statement, then=blocks[0], otherwise=blocks[1])

    def _branch(self, block: Block, outputs: tuple[Value, ...], kind: str) -> Submodule:
        """A branch as a class of its own."""
        for expression in every_expression(block):
            self.hints.names.pop(id(expression), None)
        ends = Assign((), (), ListOrTuple(tuple(block.results)))
        group = Group(Level(kind), [*block.statements, ends])
        inputs, local = self._inputs(group)
        uses = Counter(free_weights(statements_of(group)))
        self.flow.add(block)
        items = grouped(block.statements, self.reasons.decide)
        members, made, outside = self._body(items, block.results, uses, local)
        values = [*inputs, *outside.values()]
        plan = members.plan(Identifier.class_name(kind), values, made)
        plan.contract = contract(values, outputs)
        return Submodule(
            Call(self._known(plan)), members.weights, (*inputs, *outside), outputs
        )

    def _inputs(self, group: Group) -> tuple[list[Value], dict[Value, Expression]]:
        """The inputs of a class: tensors, then numbers that are no size of a tensor.

        What layers read comes first, masks and the like behind. The second result says
        how the class finds the other sizes itself, and places 0, 1, 2, ... along an
        axis that a tensor has.
        """
        main = {v for e in leaves(group) if isinstance(e, Layer) for v in e.inputs}
        read = list(dict.fromkeys(operands_of(group)))
        read.sort(key=lambda value: (value.host, value not in main))
        tensors = [v for v in read if not v.host and v not in self.places]
        numbers = dict.fromkeys(self.places.get(value, (value,))[0] for value in read)
        local = sizes_of(tensors, {v: self.symbols.get(v, "") for v in numbers})
        for value in read:
            number, made = self.places.get(value, (value, None))
            if made is not None and number in local:
                local[value] = made
        return [value for value in read if value not in local], local

    def _known(self, plan: ClassPlan) -> str:
        """The name of the class with this body; a new one where there is none.

        Statements in another order are the same body.
        """
        key = signature(as_needed(plan))
        if key in self.classes:
            known = self.classes[key]
            known.contract = merged(known.contract, plan.contract)
        else:
            self.wanted[plan.name] += 1
            plan.name = f"{plan.name}#{self.wanted[plan.name]}"
            self.classes[key] = plan
        return self.classes[key].name

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
            name: self._part(c, name) for name, c in zip(names, children, strict=True)
        }
        whole = {name: part for name, part in parts.items() if part is not None}
        if len(whole) < len(parts) or not self._is_chain(list(whole.values())):
            return None
        return as_named_sequential(whole)

    def _item_name(self, group: Group) -> str:
        """An item's name: a layer's from its weights, else the scope's."""
        layers = [e for e in leaves(group) if isinstance(e, Layer)]
        if len(layers) == 1 and is_transparent(group):
            return weights_say(layers[0], group) or group.level.name
        return group.level.name

    # --- numbered children ---

    def _container(self, group: Group, members: Members) -> list[Statement]:
        """A list of modules: a loop over equals, a Sequential, or numbered calls."""
        name = group.level.name
        children = dict(numbered(group))
        if len(children) < len(group.items):
            return self._numbered(group, members)
        parts = self._parts(children, name)
        whole = {n: part for n, part in parts.items() if part is not None}
        if len(whole) == len(parts):
            entries = {n: (part.constructor, part.weights) for n, part in whole.items()}
            chain = list(whole.values())
            if self._is_chain(chain):
                in_order = list(whole) == list(range(len(whole)))
                if not name and (sequence := as_sequential(whole)):
                    held = sequence.constructor, sequence.weights
                    return [sequence.call(members.add(name, *held))]
                if in_order and (loop := as_loop(chain, singular(name))):
                    self.reasons.decide("a list and a loop, all alike", scope_of(group))
                    return [loop(SelfAttr((members.add_list(name, entries),)))]
                if sequence := as_sequential(whole):
                    words = f"a Sequential and no loop, {no_loop(whole)}"
                    self.reasons.decide(words, scope_of(group))
                    own = members.add(name, sequence.constructor, sequence.weights)
                    return [sequence.call(own)]
        self.reasons.decide(f"a list, {no_chain(parts)}", scope_of(group))
        return self._numbered(group, members)

    def _parts(
        self, children: dict[int, Group], name: str
    ) -> dict[int, Submodule | None]:
        """Numbered children as modules; functions, too, amid those of a Sequential."""
        parts = {n: self._part(child, name) for n, child in children.items()}
        if None in parts.values() and self._is_row(list(children.values())):
            for n, child in children.items():
                layer = inner_layer(child)
                if parts[n] is None and (is_function(child) or layer is not None):
                    if layer is not None:
                        self.hints.name(layer, "")
                    parts[n] = self._made(child, function_word(child))
        return parts

    def _is_row(self, children: list[Group]) -> bool:
        """Whether each takes exactly one value, the result of the one before."""
        for child, following in pairwise(children):
            given, (taken, _) = self._outputs(child), self._inputs(following)
            readers = set(statements_of(following))
            if len(given) != 1 or given != taken:
                return False
            if self.flow.is_read_outside(given[0], readers):
                return False
        return True

    def _part(self, child: Group, container: str) -> Submodule | None:
        """A numbered child as one module, where it is one."""
        if is_transparent(child):
            statements = statements_of(child)
            return function_part(statements[0]) if len(statements) == 1 else None
        if holds_numbered(child):
            children = dict(numbered(child))
            if len(children) < len(child.items):
                return None
            parts = self._parts(children, container)
            whole = {n: part for n, part in parts.items() if part is not None}
            if len(whole) == len(parts) and self._is_chain(list(whole.values())):
                return as_sequential(whole)
            return None
        return self._made(child, container)

    def _numbered(self, group: Group, members: Members) -> list[Statement]:
        """Children called one by one, by their number in the list."""
        name = members.list_of(group.level.name)
        statements: list[Statement] = []
        for number, child in numbered(group):
            statements += self._placed(child, name, number, members)
        return statements

    def _placed(
        self, child: Group, name: str, number: int, members: Members
    ) -> list[Statement]:
        """One of a list's modules, called by its number."""
        if is_transparent(child):
            for expression in leaves(child):
                if isinstance(expression, Layer):
                    self.hints.places[id(expression)] = (name, number)
            return statements_of(child)
        part = self._attention(child) or self._part(child, name)
        part = part or self._made(child, name)
        own = members.place(name, number, part.constructor, part.weights)
        return part.calls(own)

    def _is_chain(self, parts: list[Submodule]) -> bool:
        """Whether each part's only result is read by the next part alone."""
        for part, following in pairwise(parts):
            if len(part.outputs) != 1 or part.outputs[0] not in following.inputs:
                return False
            if self.flow.is_read_outside(part.outputs[0], following.statements):
                return False
        return len(parts[-1].outputs) == 1
