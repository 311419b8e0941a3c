"""Groups become classes: equal bodies one class, chains a Sequential, repeats a loop."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from burnish.codegen.arrange.contracts import contract, has, merged, size_of, symbol
from burnish.codegen.arrange.equality import signature
from burnish.codegen.arrange.grouping import (
    Group,
    Item,
    defined,
    grouped,
    leaves,
    statements_of,
    used,
)
from burnish.codegen.arrange.hoisting import hoist
from burnish.codegen.arrange.members import (
    Members,
    constructor,
    layer_name,
    layer_weights,
    stored,
    weight_name,
    weights_say,
)
from burnish.codegen.arrange.sequences import (
    Part,
    as_loop,
    as_sequential,
    function_part,
)
from burnish.codegen.arrange.sizes import sized
from burnish.codegen.identifier import Identifier, free
from burnish.codegen.program import (
    Apply,
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    Layer,
    Level,
    Own,
    Plan,
    Program,
    Statement,
    Value,
    Weight,
    pruned,
)


def arrange(program: Program, flat: bool = False) -> Plan:
    """The program as classes, small to large, and the path of every weight.

    flat: one class, as for a file without scopes.
    """
    return _Arranger(program).plan(flat)


class _Arranger:
    def __init__(self, program: Program):
        self.program = program
        self.classes: dict[str, ClassPlan] = {}
        self.names: dict[int, str] = {}
        self.places: dict[int, tuple[str, int]] = {}
        self.readers: dict[Value, set[int]] = defaultdict(set)
        self.symbols: dict[Value, str] = {}
        for statement in program.body.statements:
            for value in used(statement):
                self.readers[value].add(id(statement))
            if isinstance(statement, Assign) and (size := symbol(statement.expression)):
                self.symbols[statement.targets[0]] = size
        for result in program.body.results:
            if isinstance(result, Value):
                self.readers[result].add(-1)
        self.weight_uses = Counter(_free_weights(program.body.statements))
        self.weight_uses.update(
            r for r in program.body.results if isinstance(r, Weight)
        )

    def plan(self, flat: bool) -> Plan:
        statements = self.program.body.statements
        for statement in statements:
            statement.scope = () if flat else _module_scope(statement)
        results = self.program.body.results
        hoist(statements, results)
        items = grouped(statements)
        members, block, _ = self._body(items, results, self.weight_uses, {})
        model = ClassPlan("Model", members.listed(block), self.program.inputs, block)
        return Plan(sized([*self.classes.values(), model]), members.weights)

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
        sizes = {value: replace(value, hint=self.symbols[value]) for value in local}
        statements: list[Statement] = [
            Assign((sizes[value],), (), found) for value, found in local.items()
        ]
        for item in items:
            if isinstance(item, Statement):
                statements.append(item)
            elif _is_transparent(item):
                self._name_layers(item, item.level.name)
                statements += statements_of(item)
            elif _holds_numbered(item):
                statements += self._container(item, members)
            else:
                part = self._made(item, item.level.name)
                own = members.add(item.level.name, part.constructor, part.weights)
                statements.append(part.call(own))
        owner = _Owner(self, members, uses, sizes)
        block = pruned(Block(statements, results).rebuilt(owner))
        return members, block, owner.outside

    def _name_layers(self, group: Group, name: str) -> None:
        """Layers of a transparent group have its name, or that of their weights.

        Exporters leave a convolution in the scope of the norm that they folded into it.
        """
        for expression in leaves(group):
            if isinstance(expression, Layer):
                told = weights_say(expression, group)
                self.names[id(expression)] = told or name

    def _made(self, group: Group, name: str) -> Part:
        """A group as a class of its own."""
        inside = {id(statement) for statement in statements_of(group)}
        outputs = tuple(v for v in defined(group) if self.readers[v] - inside)
        inputs, local = self._inputs(group)
        uses = Counter(_free_weights(statements_of(group)))
        members, block, outside = self._body(group.items, list(outputs), uses, local)
        values = [*inputs, *outside.values()]
        kind = Identifier.class_name(_class_word(group.level.kind or name))
        plan = ClassPlan(kind, members.listed(block), values, block)
        plan.contract = contract(values, outputs)
        known = self._known(plan)
        given = (*inputs, *outside)
        return Part(Call(known), members.weights, given, outputs, inside)

    def _inputs(self, group: Group) -> tuple[list[Value], dict[Value, Expression]]:
        """What a class takes: tensors, then numbers that none of them has as a size.

        The second result says how the class finds the other sizes itself.
        """
        read = list(dict.fromkeys(used(group)))
        tensors = [value for value in read if not value.host]
        local: dict[Value, Expression] = {}
        for value in read:
            if value.host and (size := self.symbols.get(value)):
                found = next((size_of(t, size) for t in tensors if has(t, size)), None)
                if found is not None:
                    local[value] = found
        hosts = [value for value in read if value.host and value not in local]
        return [*tensors, *hosts], local

    def _known(self, plan: ClassPlan) -> str:
        """The name of the class with this body; a new one where there is none."""
        key = signature(plan)
        if key in self.classes:
            known = self.classes[key]
            known.contract = merged(known.contract, plan.contract)
        else:
            taken = {other.name for other in self.classes.values()}
            plan.name = free(Identifier(plan.name), taken)
            self.classes[key] = plan
        return self.classes[key].name

    # --- numbered children ---

    def _container(self, group: Group, members: Members) -> list[Statement]:
        """A list of modules: a loop over equals, a Sequential, or numbered calls."""
        name = group.level.name
        children = numbered(group)
        parts = {n: self._part(child, name) for n, child in children.items()}
        whole = {n: part for n, part in parts.items() if part is not None}
        if len(whole) == len(parts):
            entries = {n: (part.constructor, part.weights) for n, part in whole.items()}
            chain = list(whole.values())
            if self._is_chain(chain):
                if loop := as_loop(chain, _singular(name)):
                    return [loop(Own((members.add_list(name, entries),)))]
                if sequence := as_sequential(whole):
                    own = members.add(name, sequence.constructor, sequence.weights)
                    return [sequence.call(own)]
        return self._numbered(group, members)

    def _part(self, child: Group, container: str) -> Part | None:
        """A numbered child as one module, where it is one."""
        if _is_transparent(child):
            statements = statements_of(child)
            return function_part(statements[0]) if len(statements) == 1 else None
        if _holds_numbered(child):
            parts = {n: self._part(c, container) for n, c in numbered(child).items()}
            whole = {n: part for n, part in parts.items() if part is not None}
            if len(whole) == len(parts) and self._is_chain(list(whole.values())):
                return as_sequential(whole)
            return None
        return self._made(child, container)

    def _numbered(self, group: Group, members: Members) -> list[Statement]:
        """Children called one by one, by their number in the list."""
        name = members.reserve(group.level.name)
        statements: list[Statement] = []
        for number, child in numbered(group).items():
            if _is_transparent(child):
                for expression in leaves(child):
                    if isinstance(expression, Layer):
                        self.places[id(expression)] = (name, number)
                statements += statements_of(child)
                continue
            part = self._part(child, group.level.name)
            part = part or self._made(_renamed(child), group.level.name)
            own = members.place(name, number, part.constructor, part.weights)
            statements.append(part.call(own))
        return statements

    def _is_chain(self, parts: list[Part]) -> bool:
        """Each part hands one value to the next, and to nobody else."""
        for part, following in zip(parts, parts[1:], strict=False):
            if len(part.outputs) != 1 or part.outputs[0] not in following.inputs:
                return False
            if not self.readers[part.outputs[0]] <= following.statements:
                return False
        return len(parts[-1].outputs) == 1


class _Owner:
    """Replaces layers and weights by the attributes that hold them."""

    def __init__(
        self,
        arranger: _Arranger,
        members: Members,
        uses: Counter[Weight],
        sizes: dict[Value, Value],
    ):
        self.arranger = arranger
        self.members = members
        self.uses = uses
        self.sizes = sizes
        self.attributes: dict[Weight, Expression] = {}
        self.outside: dict[Weight, Value] = {}

    def __call__(self, expression: Expression) -> Expression:
        if isinstance(expression, Layer):
            inputs = tuple(map(self, expression.inputs))
            made, weights = constructor(expression), layer_weights(expression)
            if place := self.arranger.places.get(id(expression)):
                return Apply(self.members.place(*place, made, weights), inputs)
            name = self.arranger.names.get(id(expression)) or layer_name(expression)
            return Apply(self.members.add(name, made, weights), inputs)
        if isinstance(expression, Weight):
            return self._weight(expression)
        if isinstance(expression, Value):
            return self.sizes.get(expression, expression)
        return expression.rebuilt(self)

    def _weight(self, weight: Weight) -> Expression:
        if self.uses[weight] < self.arranger.weight_uses[weight]:
            hint = weight_name(weight)
            value = Value(hint, weight.dtype, weight.shape)
            return self.outside.setdefault(weight, value)
        if weight not in self.attributes:
            name, made = weight_name(weight), stored(weight)
            self.attributes[weight] = self.members.add(name, made, [("", weight)])
        return self.attributes[weight]


def _module_scope(statement: Statement) -> tuple[Level, ...]:
    """A statement's module; where its node has none, its layer's weights tell."""
    if statement.scope:
        return statement.scope
    for expression in leaves(statement):
        if isinstance(expression, Layer) and expression.weights:
            path = next(iter(expression.weights.values())).path
            *parts, _ = path.split(".")
            if all(part.isidentifier() or part.isdigit() for part in parts):
                return tuple(Level(part) for part in parts)
    return ()


def _is_transparent(group: Group) -> bool:
    """Not a module of its own: one layer with its trimmings, or a plain function."""
    if any(isinstance(item, Group) for item in group.items):
        return False
    found = list(leaves(group))
    layers = sum(isinstance(e, Layer) for e in found)
    return layers <= 1 and not any(isinstance(e, Weight) for e in found)


def _holds_numbered(group: Group) -> bool:
    """A list of modules: nothing but children whose names are numbers."""
    return all(
        isinstance(item, Group) and item.level.name.isdigit() for item in group.items
    )


def _renamed(group: Group) -> Group:
    """Numbered children that cannot be a chain: attributes that carry the number."""
    inner = [
        Group(Level(f"part{item.level.name}", item.level.kind), item.items)
        for item in _groups(group)
    ]
    return Group(group.level, list(inner))


def numbered(group: Group) -> dict[int, Group]:
    """Numbered children by their number; a folded layer by that of its weights."""
    children = [item for item in group.items if isinstance(item, Group)]
    told = [_told_number(child, group.level.name) for child in children]
    own = [int(child.level.name) for child in children]
    numbers = [own[i] if n is None else n for i, n in enumerate(told)]
    if len(set(numbers)) < len(numbers):
        numbers = own
    return dict(zip(numbers, children, strict=True))


def _told_number(child: Group, container: str) -> int | None:
    """The number in the path of a lone layer's weights: "features.0.weight"."""
    if _is_transparent(child):
        for expression in leaves(child):
            if isinstance(expression, Layer):
                for weight in expression.weights.values():
                    parts = weight.path.split(".")
                    if parts[-3:-2] == [container] and parts[-2].isdigit():
                        return int(parts[-2])
    return None


def _groups(group: Group) -> list[Group]:
    return [item for item in group.items if isinstance(item, Group)]


def _free_weights(statements: Iterable[Statement]) -> Iterable[Weight]:
    for statement in statements:
        for expression in leaves(statement):
            if isinstance(expression, Weight):
                yield expression


def _class_word(name: str) -> str:
    """A class by its attribute; the source's own class is called Model already."""
    word = name if name[:1].isupper() else _singular(name)
    return "network" if word.lower() == "model" else word


def _singular(name: str) -> str:
    bare = name.rstrip("0123456789_") or name
    return (
        bare[:-1] if len(bare) > 3 and bare.endswith("s") and bare[-2] != "s" else bare
    )
