"""Type annotations for constructors and `forward`, by abstract interpretation.

Every class is evaluated with the types that its callers pass, the model's inputs first.
A type is the text of an annotation, or the expression that constructs a module. What
cannot be inferred is `Any`, so that no annotation is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from burnish import Tensor, nn, ops
from burnish.codegen.program import (
    Assign,
    Attribute,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Conditional,
    Expression,
    If,
    ListOrTuple,
    Literal,
    Loop,
    Method,
    ModuleCall,
    Name,
    Plan,
    Repeat,
    SelfAttr,
    Slice,
    Subscript,
    UnaryOp,
    Unwritten,
    Value,
    held,
)

Type: TypeAlias = str | Expression

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "is", "is not"))
_BUILTINS = frozenset(("int", "float", "bool", "str", "len"))
_SIZES = "tuple[int, ...]"


@dataclass
class Annotations:
    """The types of one class: its constructor's parameters and its `forward`'s.

    values: of what `forward` computes.
    """

    parameters: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    result: str = "Any"
    values: dict[Value, str] = field(default_factory=dict)

    def words(self) -> str:
        return " ".join((*self.parameters.values(), *self.inputs, self.result))


def annotated(plan: Plan, optional: Iterable[Value]) -> dict[str, Annotations]:
    """The annotations of each class by its name; `optional` inputs may be None."""
    found = _Interpreter(plan)
    for each in reversed(plan.classes):  # callers before what they construct
        found.constructed(each)
    model, may_lack = plan.classes[-1], set(optional)
    found.call(
        model.name,
        [
            joined((declared(value), *(["None"] if value in may_lack else [])))
            for value in model.inputs
        ],
    )
    for each in plan.classes:
        if len(found.classes[each.name].inputs) != len(each.inputs):
            found.call(each.name, ["Any"] * len(each.inputs))
    return found.classes


def declared(value: Value) -> str:
    """The type of a value, from the model file's dtype and rank."""
    if not value.host:
        return "Tensor" if value.dtype else "Any"
    kinds = {"int": "int", "uint": "int", "float": "float", "bool": "bool"}
    kind = re.match("[a-z]*", value.dtype or "")
    name = kinds.get(kind[0] if kind else "", "Any")
    return name if value.shape == () else "Any"


def joined(types: Iterable[Type]) -> str:
    """One annotation for values of all these types."""
    words = dict.fromkeys(t if isinstance(t, str) else "Any" for t in types)
    if len(words) > 1 and "None" in words and "Any" not in words:
        words.pop("None")
        return f"{joined(words)} | None"
    if words.keys() == {"int", "float"}:
        return "float"
    if words.keys() <= {"Tensor", "Tensor | None"} and len(words) == 2:
        return "Tensor | None"
    return next(iter(words)) if len(words) == 1 else "Any"


class _Interpreter:
    def __init__(self, plan: Plan):
        self.plans = {each.name: each for each in plan.classes}
        self.classes = {name: Annotations() for name in self.plans}
        self.results: dict[tuple[str, tuple[str, ...]], str] = {}

    # --- constructors ---

    def constructed(self, plan: ClassPlan) -> None:
        """Complete a class's parameters, and propagate types to constructed members."""
        own = self.classes[plan.name].parameters
        for name in plan.parameters:
            given = [own[name]] if name in own else []
            if name in plan.defaults:
                given.append(_of_constant(plan.defaults[name]))
            own[name] = joined(given or ["Any"])
        for _, made in plan.members:
            self._construct(made, own)

    def _construct(self, made: Expression, own: dict[str, str]) -> None:
        for part in made.children():
            self._construct(part, own)
        if not isinstance(made, Call) or made.function not in self.plans:
            return
        plan = self.plans[made.function]
        types = self.classes[made.function].parameters
        places = zip(plan.parameters, made.args, strict=False)
        for name, given in (*places, *made.options):
            found = _of_argument(given, own)
            types[name] = joined((types[name], found)) if name in types else found

    # --- forward ---

    def call(self, name: str, given: Sequence[Type]) -> str:
        """The result's type of a class called with these types."""
        plan, types = self.plans[name], self.classes[name]
        words = [joined([t]) for t in given]
        words += ["Any"] * (len(plan.inputs) - len(words))
        key = (name, tuple(words))
        if key in self.results:
            return self.results[key]
        self.results[key] = "Any"  # while it is evaluated
        if types.inputs:
            words = [joined(pair) for pair in zip(types.inputs, words, strict=True)]
        types.inputs = words
        env: dict[Value, Type] = dict(zip(plan.inputs, words, strict=True))
        _Body(self, plan, env).block(plan.block)
        body = _Body(self, plan, env)
        types.result = self.results[key] = body.result(plan.block)
        types.values = {value: joined([found]) for value, found in env.items()}
        return types.result


@dataclass
class _Body:
    """One evaluation of a class's `forward`."""

    program: _Interpreter
    plan: ClassPlan
    env: dict[Value, Type]

    def block(self, block: Block) -> None:
        for statement in block.statements:
            match statement:
                case Assign(targets=targets, expression=expression):
                    self._bind(targets, self.type(expression))
                case If():
                    for part in statement.blocks():
                        self.block(part)
                    self._merge(statement.targets, statement.blocks())
                case Loop():
                    self._loop(statement)

    def result(self, block: Block) -> str:
        """The annotation of `forward`'s result; a returned call's own annotation."""
        last = block.statements[-1] if block.statements else None
        if isinstance(last, Assign) and [*last.targets] == block.results:
            return joined([self.type(last.expression)])
        parts = [joined([self.type(part)]) for part in block.results]
        return parts[0] if len(parts) == 1 else f"tuple[{', '.join(parts)}]"

    def _bind(self, targets: Sequence[Value], found: Type) -> None:
        if len(targets) == 1:
            self.env[targets[0]] = found
            return
        parts = _elements(found, len(targets))
        self.env.update(zip(targets, parts, strict=True))

    def _merge(self, targets: Sequence[Value], blocks: Sequence[Block]) -> None:
        for place, target in enumerate(targets):
            self.env[target] = joined(self.type(b.results[place]) for b in blocks)

    def _loop(self, loop: Loop) -> None:
        index: Type = "int"
        if loop.items is not None:
            index = _element(self.type(loop.items))
        if loop.index is not None:
            self.env[loop.index] = index
        for item, items in loop.beside:
            self.env[item] = _element(self.type(items))
        if loop.going is not None:
            self.env[loop.going] = "Any"
        starts = [self.type(part) for part in loop.initial]
        self.env.update(zip(loop.carried, starts, strict=True))
        self.block(loop.body)
        skipped = len(loop.body.results) - len(loop.carried) - loop.collected
        ends = [self.type(part) for part in loop.body.results[skipped:]]
        for value, start, end in zip(loop.carried, starts, ends, strict=False):
            self.env[value] = joined((start, end))
        self.block(loop.body)
        kept = [self.env[value] for value in loop.carried]
        lists = [f"list[{joined([end])}]" for end in ends[len(loop.carried) :]]
        self.env.update(zip(loop.targets, [*kept, *lists], strict=True))

    def type(self, expression: Expression) -> Type:
        """The type of an expression; of a module, what constructs it."""
        match expression:
            case Value():
                return self.env.get(expression) or declared(expression)
            case Literal(value=value):
                return _of_constant(value)
            case SelfAttr(path=path):
                return self._own(path)
            case Unwritten(gives=(only,)):
                return only
            case Unwritten(gives=kinds):
                return f"tuple[{', '.join(kinds)}]"
            case Call(function=function):
                return _of_function(function)
            case Method(target=target, name=name):
                return _of_member(self.type(target), name)
            case Attribute(target=target, name=name):
                return _of_member(self.type(target), name)
            case Subscript(target=target, keys=keys):
                return _of_item(self.type(target), keys)
            case BinOp(operator=operator, left=left, right=right):
                return _of_infix(operator, self.type(left), self.type(right))
            case UnaryOp(operator=operator, operand=operand):
                return "bool" if operator == "not " else self.type(operand)
            case Conditional(then=then, otherwise=otherwise):
                return joined((self.type(then), self.type(otherwise)))
            case ListOrTuple(items=items, brackets="[]"):
                return f"list[{joined(map(self.type, items)) if items else 'Any'}]"
            case ListOrTuple(items=items):
                parts = ", ".join(joined([self.type(item)]) for item in items)
                return f"tuple[{parts}]"
            case ModuleCall(target=target, inputs=inputs):
                return self._applied(target, inputs)
        return "Any"

    def _own(self, path: tuple[str | int, ...]) -> Type:
        first, *rest = path
        made = dict(self.plan.members).get(str(first))
        if isinstance(made, Name):
            return self.program.classes[self.plan.name].parameters.get(made.text, "Any")
        if isinstance(made, Call) and made.function in ("nn.Param", "nn.Buffer"):
            return "Tensor"
        return held(made, rest, self.plan.base) or "Any"

    def _applied(self, target: Expression, inputs: Sequence[Expression]) -> Type:
        if isinstance(target, SelfAttr) and target.path == ("",):
            return "Tensor"
        made = target if isinstance(target, Call) else self.type(target)
        given = [self.type(part) for part in inputs]
        if not isinstance(made, Call):
            return "Any"
        if made.function in self.program.plans:
            plan = self.program.plans[made.function]
            if not plan.block.results:
                return "Tensor"  # what it extends is called
            return self.program.call(made.function, given)
        layer = getattr(nn, made.function.removeprefix("nn."), None)
        return _returned(getattr(layer, "forward", None))


# --- types of parts ---


def _of_constant(value: object) -> str:
    if isinstance(value, tuple) and value and all(type(v) is int for v in value):
        return _SIZES
    if isinstance(value, tuple | list):
        return "Any"
    return "None" if value is None else type(value).__name__


def _of_argument(given: Expression, own: dict[str, str]) -> str:
    """The type of an argument, an expression over another constructor's."""
    match given:
        case Literal(value=value):
            return _of_constant(value)
        case Name(text=name):
            return "int" if name == "i" else own.get(name, "Any")
        case BinOp(operator=operator, left=left, right=right):
            sides = (_of_argument(left, own), _of_argument(right, own))
            return _of_infix(operator, *sides)
        case UnaryOp(operator=operator, operand=operand):
            return "bool" if operator == "not " else _of_argument(operand, own)
        case Conditional(then=then, otherwise=otherwise):
            return joined((_of_argument(then, own), _of_argument(otherwise, own)))
    return "Any"


def _of_infix(operator: str, left: Type, right: Type) -> str:
    if "Tensor" in (left, right):
        return "Tensor"
    if operator in _COMPARISONS:
        return "bool" if "Any" not in (left, right) else "Any"
    if left == right and operator in ("+", "and", "or"):
        return joined([left])
    if {left, right} <= {"int", "float"}:
        whole = left == right == "int" and operator not in ("/", "**")
        return "int" if whole else "float" if operator != "**" else "Any"
    return "Any"


def _of_function(name: str) -> str:
    if name in _BUILTINS:
        return "int" if name == "len" else name
    module, _, word = name.rpartition(".")
    homes: dict[str, object] = {"ops": ops, "Tensor": Tensor}
    return _returned(getattr(homes.get(module), word, None))


def _of_member(target: Type, name: str) -> str:
    """The type of an attribute, or of a method's result."""
    if target != "Tensor":
        return "Any"
    member = getattr(Tensor, name, None)
    return _returned(member.fget if isinstance(member, property) else member)


def _of_item(target: Type, keys: Sequence[Expression]) -> Type:
    if target == "Tensor":
        return "Tensor"
    if len(keys) != 1 or isinstance(keys[0], Slice):
        return target if target == _SIZES and len(keys) == 1 else "Any"
    return _element(target)


def _returned(function: Callable[..., Any] | None) -> str:
    """A function's annotated result, with Tensor for Array."""
    signature = getattr(function, "__func__", getattr(function, "value", function))
    annotation = getattr(signature, "__annotations__", {}).get("return")
    words = (
        re.sub(r"\bArray\b", "Tensor", annotation)
        if isinstance(annotation, str)
        else "Any"
    )
    if words != annotation and words.startswith("tuple["):
        words = "tuple[Tensor, ...]"  # as the decorators of operators have it
    return words if re.fullmatch(r"[\w\[\], .|]*", words) and _known(words) else "Any"


def _known(words: str) -> bool:
    names = set(re.findall(r"[A-Za-z_]\w*", words))
    return names <= {"Tensor", "int", "float", "bool", "str", "tuple", "list", "None"}


def _element(found: Type) -> Type:
    """The type of each element of a list or tuple; of a list of modules, a module."""
    if isinstance(found, Repeat):
        return found.item
    form = r"list\[(.*)\]|tuple\[(.*), \.\.\.\]"
    if isinstance(found, str) and (match := re.fullmatch(form, found)):
        return match[1] or match[2]
    return "Any"


def _elements(found: Type, count: int) -> Sequence[Type]:
    if isinstance(found, str) and (
        match := re.fullmatch(r"tuple\[([^\[\]]*)\]", found)
    ):
        parts = match[1].split(", ")
        if parts[-1] == "...":
            return parts[:1] * count
        if len(parts) == count:
            return parts
    return ["Any"] * count
