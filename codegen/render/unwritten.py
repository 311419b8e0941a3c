"""Method stubs for unsupported operators: their types and docstrings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from burnish.codegen.names.identifier import Identifier, Names, plain
from burnish.codegen.program import (
    Assign,
    Block,
    ClassPlan,
    Expression,
    Literal,
    SelfAttr,
    Unwritten,
    Value,
    walk,
)
from burnish.codegen.render.layout import broken_signature, fits
from burnish.codegen.render.words import literal

_USUAL = ("x", "y", "z")


@dataclass
class _Method:
    """The method stub of all its calls in one class."""

    kind: str
    results: list[set[str]] = field(default_factory=list)
    arguments: list[tuple[str, set[str]]] = field(default_factory=list)
    options: dict[str, set[str]] = field(default_factory=dict)
    calls: int = 0
    asked: dict[str, int] = field(default_factory=dict)
    shapes: str = ""


def methods(plan: ClassPlan) -> list[list[str]]:
    """The lines of every method stub that a class calls."""
    found: dict[str, _Method] = {}
    calls = [(c.function.removeprefix("self."), t, c) for t, c in _calls(plan.block)]
    for name, _, call in calls:  # no argument has an option's name
        method = found.setdefault(name, _Method(call.operator))
        for option, value in call.options:
            method.options.setdefault(option, set()).add(_type(value))
            method.asked[option] = method.asked.get(option, 0) + 1
    for name, targets, call in calls:
        method = found[name]
        _add(method, call)
        if targets and not method.shapes:
            method.shapes = _signature(call, targets, bool(plan.parameters))
    return [_lines(name, method) for name, method in found.items()]


def _calls(block: Block) -> Iterator[tuple[tuple[Value, ...], Unwritten]]:
    """Every call, and its results if it is a statement of its own."""
    for statement in block.statements:
        for expression in statement.expressions():
            for part in walk(expression):
                if isinstance(part, Unwritten):
                    alone = isinstance(statement, Assign) and part is expression
                    yield statement.targets if alone else (), part
        for inner in statement.blocks():
            yield from _calls(inner)
    for result in block.results:
        for part in walk(result):
            if isinstance(part, Unwritten):
                yield (), part


def _add(method: _Method, call: Unwritten) -> None:
    method.calls += 1
    method.results = method.results or [set() for _ in call.gives]
    for result, kind in zip(method.results, call.gives, strict=True):
        result.add(kind)
    names = Names([*(name for name, _ in method.arguments), *method.options])
    for place, given in enumerate(call.args):
        if place == len(method.arguments):
            before = {"None"} if method.calls > 1 else set[str]()
            method.arguments.append((names.new(_called(given, place)), before))
        known = call.takes[place] if place < len(call.takes) else "Tensor"
        method.arguments[place][1].add(_type(given, known))
    for _, kinds in method.arguments[len(call.args) :]:
        kinds.add("None")


def _called(given: Expression, place: int) -> Identifier:
    """A parameter's name: a weight's own, else x, y, z."""
    if isinstance(given, SelfAttr):
        return Identifier.variable(str(given.path[-1]))
    return Identifier(_USUAL[place] if place < len(_USUAL) else f"x{place + 1}")


def _type(given: Expression, known: str = "Tensor") -> str:
    """The annotation of an argument. known: that of the graph's value."""
    if known != "Tensor":
        return "None" if isinstance(given, Literal) and given.value is None else known
    if isinstance(given, Value) and given.host:
        return {"bool": "bool", "object": "Any"}.get(given.dtype or "", "int")
    if not isinstance(given, Literal):
        return "Tensor"
    value = given.value
    if isinstance(value, list):
        kinds = {type(item).__name__ for item in value}
        return f"list[{kinds.pop()}]" if len(kinds) == 1 else "list[float]"
    return "None" if value is None else type(value).__name__


def _signature(call: Unwritten, targets: tuple[Value, ...], resized: bool) -> str:
    """`float32 (batch, 3), float32 (3,) -> float32 (batch, 3)`, as the graph says."""
    before = ", ".join(
        _array(part, kind, resized)
        for part, kind in zip_longest(call.args, call.takes)
        if isinstance(part, Value) and not part.host
    )
    after = ", ".join(
        _array(target, kind, resized)
        for target, kind in zip(targets, call.gives, strict=False)
    )
    return f"{before} -> {after}" if before else after


def _array(value: Value, kind: str | None, resized: bool) -> str:
    """An annotation with the shape of one call.

    kind: the annotation; resized: the class has size arguments, so calls differ in
    sizes.
    """
    if (kind or "Tensor") != "Tensor":
        return str(kind)
    dtype = value.dtype or "any"
    if value.shape is None:
        return f"{dtype} (...)"
    sizes = [_size(d, resized) for d in value.shape]
    return f"{dtype} ({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def _size(dim: int | str | None, resized: bool) -> str:
    if dim is None or (resized and isinstance(dim, int)):
        return "_"
    return plain(str(dim))


def _lines(name: str, method: _Method) -> list[str]:
    given = [f"{name}: {_joined(kinds)}" for name, kinds in method.arguments]
    for place, (_, kinds) in enumerate(method.arguments):
        if "None" in kinds and all("None" in k for _, k in method.arguments[place:]):
            given[place] += " = None"
    named = []
    for option, kinds in method.options.items():
        sometimes = method.asked[option] < method.calls
        words = _joined(kinds | {"None"}) if sometimes else _joined(kinds)
        named.append(f"{option}: {words}{' = None' if sometimes else ''}")
    parameters = ["self", *given, *(["*", *named] if named else [])]
    result = ", ".join(map(_joined, method.results))
    if len(method.results) > 1:
        result = f"tuple[{result}]"
    return [
        *broken_signature(name, parameters, 4, result),
        *_documented(method),
        *_stand_in(method),
    ]


def _stand_in(method: _Method) -> list[str]:
    """What the stub returns; its last brackets are broken first, as formatters do."""
    head, kind = "        return nn.Unwritten(", literal(method.kind)
    names = [name for name, _ in method.arguments]
    passed = ", ".join(names)
    broken: list[str] = []
    last = f"{head}{kind})("
    if not fits(last if names else f"{last})"):
        broken, last = [head, f"            {kind}"], "        )("
    if fits(line := f"{last}{passed})"):
        return [*broken, line]
    inner = f"            {passed}"
    each = [inner] if fits(inner) else [f"            {name}," for name in names]
    return [*broken, last, *each, "        )"]


def _joined(kinds: set[str]) -> str:
    each = {word for kind in kinds for word in kind.split(" | ")}
    return " | ".join(sorted(each, key=lambda kind: (kind == "None", kind)))


def _documented(method: _Method) -> list[str]:
    """The stub's docstring; shapes get a line of their own if they do not fit."""
    line = f'        """To fill in: {plain(method.kind.rpartition(" (")[0])}'
    whole = f'{line}, {method.shapes}"""'
    if method.shapes and fits(whole):
        return [whole]
    if method.shapes and fits(f"        {method.shapes}"):
        return [line, "", f"        {method.shapes}", '        """']
    return [f'{line}"""']
