"""Roles of values by their readers and producers: `residual`, `mask`, `scores`.

An argument of attention is a query, a key, a value or a mask, in the class that
attends and in those around it that hand it down; what cosines make is `cos`.
"""

from __future__ import annotations

from collections.abc import Iterator

from burnish.codegen.ops import argument_roles, role_names
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    ListOrTuple,
    Loop,
    Method,
    ModuleCall,
    Plan,
    Repeat,
    SelfAttr,
    Statement,
    Value,
    held,
    walk,
)

Roles = dict[Value, str]

_ARGUMENTS = argument_roles()
_ANGLES = frozenset(("cos", "sin"))
_RESULTS = {name: role for name, role in role_names().items() if role in _ANGLES}
_HANDED_ON = _ANGLES | {"mask"}
_VIEWS = frozenset(("expand", "reshape", "squeeze", "to", "transpose", "unsqueeze"))
_ROUNDS = 3


def roles_of(plan: Plan) -> Roles:
    """A name for every value with a recognizable role."""
    finder = _Finder(plan)
    for _ in range(_ROUNDS):
        before = len(finder.roles)
        for each in plan.classes:
            finder.up(each)
        for each in reversed(plan.classes):
            finder.down(each)
        if len(finder.roles) == before:
            break
    return finder.roles


def residuals(plan: ClassPlan) -> Roles:
    """The inputs after the first that a class only adds to something."""
    roots = [e for s in _statements(plan.block) for e in s.expressions()]
    readers: dict[Expression, list[Expression]] = {}
    for root in [*roots, *plan.block.results]:
        for part in walk(root):
            for child in part.children():
                readers.setdefault(child, []).append(part)
    return {
        value: "residual"
        for value in plan.inputs[1:]
        if not value.host and [*map(_adds, readers.get(value, []))] == [True]
    }


class _Finder:
    def __init__(self, plan: Plan):
        self.roles: Roles = {}
        self.classes = {each.name: each for each in plan.classes}
        self.members = {each.name: dict(each.members) for each in plan.classes}

    # --- from what reads a value to the value ---

    def up(self, plan: ClassPlan) -> None:
        statements = list(_statements(plan.block))
        for statement in reversed(statements):
            for expression in statement.expressions():
                for part in walk(expression):
                    self._arguments(plan, part, statements)
            if isinstance(statement, Assign) and len(statement.targets) == 1:
                self._came_from(statement, plan.inputs)
        for result in plan.block.results:
            for part in walk(result):
                self._arguments(plan, part, statements)

    def _arguments(
        self, plan: ClassPlan, part: Expression, statements: list[Statement]
    ) -> None:
        if isinstance(part, Call):
            names = _ARGUMENTS.get(part.function, {})
            for place, argument in enumerate(part.args):
                self._note(argument, names.get(place, ""))
            for option, value in part.options:
                for term in _terms(value):
                    self._note(term, names.get(option, ""))
        elif isinstance(part, ModuleCall):
            child = self._called(plan, part, statements)
            inputs = [] if child is None else child.inputs
            for argument, value in zip(part.inputs, inputs, strict=False):
                self._note(argument, self.roles.get(value, ""))

    def _note(self, value: Expression, role: str) -> None:
        if role and isinstance(value, Value) and not value.host:
            self.roles.setdefault(value, role)

    def _came_from(self, statement: Assign, inputs: list[Value]) -> None:
        """`q = q * cos + ...`: the operands of a query are queries as well."""
        role = self.roles.get(statement.targets[0])
        if role is None:
            return
        if role == "mask":
            for term in _terms(statement.expression):
                self._note(term, role)
        first = _first(statement.expression)
        if first is not None and first not in inputs:
            self._note(first, role)

    # --- from what makes a value to the value ---

    def down(self, plan: ClassPlan) -> None:
        statements = list(_statements(plan.block))
        for statement in statements:
            if isinstance(statement, Assign):
                self._made(plan, statement, statements)
            for expression in statement.expressions():
                for part in walk(expression):
                    if isinstance(part, ModuleCall):
                        self._handed_down(plan, part, statements)
        for result in plan.block.results:
            for part in walk(result):
                if isinstance(part, ModuleCall):
                    self._handed_down(plan, part, statements)

    def _made(
        self, plan: ClassPlan, statement: Assign, statements: list[Statement]
    ) -> None:
        expression = statement.expression
        if isinstance(expression, ModuleCall) and len(statement.targets) > 1:
            child = self._called(plan, expression, statements)
            results = [] if child is None else child.block.results
            for target, result in zip(statement.targets, results, strict=False):
                self._note(target, self._role(result))
        elif len(statement.targets) == 1:
            self._note(statement.targets[0], self._role(expression))

    def _role(self, expression: Expression) -> str:
        match expression:
            case Value():
                role = self.roles.get(expression, "")
                return role if role in _HANDED_ON else ""
            case Call(function=function):
                return _RESULTS.get(function, "")
            case Method(target=target, name=name) if name in _VIEWS:
                return self._role(target)
        return ""

    def _handed_down(
        self, plan: ClassPlan, part: ModuleCall, statements: list[Statement]
    ) -> None:
        child = self._called(plan, part, statements)
        for argument, value in zip(
            part.inputs, [] if child is None else child.inputs, strict=False
        ):
            self._note(value, self._role(argument))

    # --- which class is called ---

    def _called(
        self, plan: ClassPlan, part: ModuleCall, statements: list[Statement]
    ) -> ClassPlan | None:
        target: Expression | None = part.target
        if isinstance(target, Value):
            loops = (s.iterables() for s in statements if isinstance(s, Loop))
            runs = (items for run in loops for v, items in run if v is target)
            target = next(runs, None)
        if not isinstance(target, Method | SelfAttr):
            return None
        # `self.values()` has no path
        name, *steps = target.path if isinstance(target, SelfAttr) else ("",)
        made = self.members[plan.name].get(str(name))
        if steps:
            made = held(made, steps)
        while made is not None and not isinstance(made, Call):
            made = _inside(made)
        return None if made is None else self.classes.get(made.function)


def _adds(part: Expression) -> bool:
    return isinstance(part, BinOp) and part.operator == "+"


def _terms(total: Expression) -> Iterator[Expression]:
    """The terms of a sum, or the one expression."""
    if isinstance(total, BinOp) and total.operator == "+":
        yield from _terms(total.left)
        yield from _terms(total.right)
    else:
        yield total


def _inside(made: Expression) -> Expression | None:
    """One of the modules of a list."""
    match made:
        case Repeat(item=item):
            return item
        case ListOrTuple(items=(first, *_)) | Method(args=(first, *_)):
            return first
    return None


def _first(expression: Expression) -> Value | None:
    """The leftmost value of an expression: x in `x * y + z` and in `x.reshape(2)`."""
    match expression:
        case Value():
            return expression
        case BinOp(left=left):
            return _first(left)
        case Method(target=target) | Attribute(target=target):
            return _first(target)
        case Call(function=function, args=(first, *_)) if function in _ARGUMENTS:
            return _first(first)
    return None


def _statements(block: Block) -> Iterator[Statement]:
    for statement in block.statements:
        yield statement
        for inner in statement.blocks():
            yield from _statements(inner)
