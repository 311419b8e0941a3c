"""Render classes and the whole module through the templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnish.codegen.program import (
    Assign,
    Block,
    Call,
    ClassPlan,
    Expression,
    Literal,
    ModuleCall,
    Name,
    Plan,
    Unwritten,
    Value,
    every_expression,
    walk,
)
from burnish.codegen.render.annotate import Annotations, annotated
from burnish.codegen.render.body import function_body
from burnish.codegen.render.environment import filled
from burnish.codegen.render.layout import WIDTH, broken_signature, fits, laid_out
from burnish.codegen.render.names import input_names, named
from burnish.codegen.render.roles import Roles, residuals, roles_of
from burnish.codegen.render.tidy import Nested, tidied
from burnish.codegen.render.unwritten import methods
from burnish.codegen.render.words import attribute, literal, text

_SEVERAL = 16
"""More calls than this fit on no line."""


@dataclass(frozen=True)
class Header:
    """What the page tells of the model and where it comes from, line by line."""

    title: str
    lines: tuple[str, ...]
    accepts: tuple[tuple[str, str], ...]
    optional: Mapping[str, Any]
    typed: bool = False


@dataclass(frozen=True)
class ClassPage:
    """One class as finished strings."""

    name: str
    base: str
    contract: list[str]
    constructor: list[str]
    init: list[str]
    decorators: list[str]
    forward: list[str]
    body: list[str]
    methods: list[list[str]]


def render(
    plan: Plan,
    header: Header,
    embedded: str | None = None,
    template_dir: Path | None = None,
    golden: str | None = None,
) -> str:
    """The module's source.

    embedded: its weights, golden: its inputs and outputs, both as lines of base64.
    """
    roles = roles_of(plan)
    types = _types(plan, header)
    pages = [
        _class(
            each,
            header if each is plan.classes[-1] else None,
            roles,
            types.get(each.name),
        )
        for each in plan.classes
    ]
    return filled(
        "module.py.jinja",
        template_dir,
        header=header,
        imports=_imports(plan, types, ("selftest",) if golden else ()),
        classes=pages,
        embedded=embedded,
        golden=golden,
    )


_OURS = frozenset(("Tensor", "nn", "ops", "self", "math"))


def _types(plan: Plan, header: Header) -> dict[str, Annotations]:
    """The annotations of every class, none where the source is not to have any."""
    if not header.typed:
        return {}
    names = input_names(plan.classes[-1].inputs)
    return annotated(plan, [v for v, name in names.items() if name in header.optional])


def _imports(
    plan: Plan, types: Mapping[str, Annotations], more: tuple[str, ...]
) -> list[str]:
    """Import lines for what the classes use, sorted as a linter sorts them."""
    names = {name for each in plan.classes for name in _functions(each)}
    for each in plan.classes if types else ():
        names |= set(re.findall(r"\w+", types[each.name].words()))
        names |= {
            "Tensor"
            for made in each.members
            if "Tensor" in _target(*made, types[each.name])
        }
    used = {"nn"} | {name.partition(".")[0].partition("(")[0] for name in names}
    burnish = [name for name in ("Tensor", "nn", "ops") if name in used] + [*more]
    lines = ["import math"] if "math" in used else []
    lines += ["from typing import Any"] if "Any" in used else []
    lines += [""] if lines else []
    own = {name.rpartition(".")[0] for name in names if _is_foreign(name)}
    lines += [f"import {module}" for module in sorted(own)]
    return [*lines, f"from burnish import {', '.join(burnish)}"]


def _is_foreign(name: str) -> bool:
    """Whether a function is neither ours nor a builtin: `my_package.my_operator`."""
    module, _, _ = name.rpartition(".")
    return bool(module) and name.partition(".")[0] not in _OURS


def _functions(plan: ClassPlan) -> Iterable[str]:
    for expression in every_expression(plan.block):
        yield from _function(expression)
    for _, made in plan.members:
        for expression in walk(made):
            yield from _function(expression)


def _function(expression: Expression) -> Iterable[str]:
    if isinstance(expression, Unwritten):
        yield "Tensor"
    elif isinstance(expression, Call):
        yield expression.function
    elif isinstance(expression, Name):
        yield expression.text


def _class(
    plan: ClassPlan, header: Header | None, roles: Roles, types: Annotations | None
) -> ClassPage:
    roles = residuals(plan) | roles
    values = types.values if types else {}
    names, parts = _forward(plan, header is not None, roles, values)
    own = bool(plan.block.results)  # else what it extends has a forward
    init = [line for each in plan.divided for line in _check(*each)]
    init += [
        line
        for name, made in plan.members
        for line in laid_out(_target(name, made, types), made, {}, 8)
    ]
    for one, other in plan.shared:
        init += laid_out(f"{text(one, {})} = ", other, {}, 8)
    parameters = ["self"]
    for place, value in enumerate(plan.inputs):
        default = "None" if header and names[value] in header.optional else ""
        word = types.inputs[place] if types else ""
        parameters.append(_parameter(names[value], word, default))
    decorators = []
    if header and header.accepts:
        specs = tuple((name, Literal(spec)) for name, spec in header.accepts)
        decorators = laid_out("@", Call("nn.accepts", (), specs), {}, 4)
    return ClassPage(
        plan.name,
        plan.base,
        _documented(plan.contract, plan.about),
        broken_signature(
            "__init__", ["self", *_arguments(plan, types)], 4, "None" if types else ""
        ),
        init,
        decorators,
        broken_signature("forward", parameters, 4, types.result if types else "")
        if own
        else [],
        parts if own else [],
        methods(plan),
    )


def _target(name: str, made: Expression, types: Annotations | None) -> str:
    """A member's target; a buffer or parameter has a type annotation."""
    if not name:
        return ""
    target = attribute(name)
    is_variable = isinstance(made, Call) and made.function in ("nn.Param", "nn.Buffer")
    if types and is_variable and target == f"self.{name}":
        return f"{target}: Tensor = "
    return f"{target} = "


def _check(whole: str, by: str, times: int) -> list[str]:
    """Lines that raise for arguments where one must divide the other."""
    factor = by if times == 1 else f"{times} * {by}"
    asked = f"        if {whole} % {by if times == 1 else f'({factor})'}:"
    ends = f"{factor}={{{factor}}} does not divide", f"{whole}={{{whole}}}"
    line = f'            raise ValueError(f"{" ".join(ends)}")'
    if fits(line):
        return [asked, line]
    told = [f'f"{" ".join(ends)}"']
    if not fits(" " * 16 + told[0]):
        told = [f'f"{ends[0]} "', f'f"{ends[1]}"']
    lines = [f"                {each}" for each in told]
    return [asked, "            raise ValueError(", *lines, "            )"]


def _arguments(plan: ClassPlan, types: Annotations | None) -> list[str]:
    """The constructor's arguments, with their types and defaults."""
    return [
        _parameter(
            name,
            types.parameters[name] if types else "",
            literal(plan.defaults[name]) if name in plan.defaults else "",
        )
        for name in plan.parameters
    ]


def _parameter(name: str, word: str, default: str) -> str:
    """`x`, `x=1`, `x: int`, `x: int = 1`"""
    if not word:
        return f"{name}={default}" if default else name
    return f"{name}: {word} = {default}" if default else f"{name}: {word}"


def _documented(contract: str, about: str) -> list[str]:
    """A class's docstring: its shape contract, or else what is said about it."""
    line = f'    """{contract or about}"""'
    if not contract and not about:
        return []
    if len(line) <= WIDTH:
        return [line]
    before, _, after = contract.partition(" -> ")
    parts = re.split(r"(?<=\),) ", before) if contract else about.split(" ")
    lines = ['    """']
    quotes = 0 if contract else 3  # a formatter puts them behind a lone line
    for part in parts:
        if len(lines[-1]) + len(part) + 1 + quotes > WIDTH:
            lines.append("    ")
        lines[-1] += part if lines[-1].endswith(('"""', "    ")) else f" {part}"
    lines += [f"    -> {after}"] if after else []
    lines.append('    """')
    return lines if all(len(line) <= WIDTH for line in lines) else []


def _forward(
    plan: ClassPlan, is_model: bool, roles: Roles, types: Mapping[Value, str]
) -> tuple[dict[Value, str], list[str]]:
    """Names and lines; what makes a line too long gets a statement of its own."""
    steps = set(_steps(plan.block))
    pinned = set(steps)
    while crowded := _tried(plan, is_model, pinned, roles, types).crowded:
        pinned |= crowded
    results = plan.block.results if len(plan.block.results) <= _SEVERAL else []
    for value in [v for v in results if v in pinned]:
        if value in steps:
            continue
        fewer = pinned - {value}
        if not _tried(plan, is_model, fewer, roles, types).crowded:
            pinned = fewer
    done = _tried(plan, is_model, pinned, roles, types)
    return done.names, done.lines


def _steps(block: Block) -> Iterable[Value]:
    """What steps that are to be written take and give: each stands on its own line."""
    for statement in block.statements:
        made = statement.expression if isinstance(statement, Assign) else None
        if isinstance(made, ModuleCall) and isinstance(made.target, Call):
            yield from (t for t in statement.targets if t not in block.results)
            yield from (x for x in made.inputs if isinstance(x, Value))


@dataclass(frozen=True)
class _Trial:
    """A body with certain values pinned, and what makes its lines too long."""

    names: dict[Value, str]
    lines: list[str]
    crowded: set[Value]


def _tried(
    plan: ClassPlan,
    is_model: bool,
    pinned: set[Value],
    roles: Roles,
    types: Mapping[Value, str],
) -> _Trial:
    block, absorbed = tidied(plan.block, pinned)
    names = named(plan.inputs, block, keep_inputs=is_model, roles=roles, types=types)
    parts = function_body(block, names, 8)
    crowded = {
        value
        for lines, place in parts
        if _too_long(lines, block, place)
        for value in _middle(lines, absorbed.get(place, {}), plan.block, names)
    }
    return _Trial(names, [line for lines, _ in parts for line in lines], crowded)


def _middle(
    lines: list[str], nested: Nested, block: Block, names: dict[Value, str]
) -> list[Value]:
    """What to take out of a crowded statement: about half; what is returned last.

    Of many parts the longer half goes at once: thousands are no thousand trials. Of
    many results each goes, with what it is made of.
    """
    if len(block.results) > _SEVERAL and any(v in nested for v in block.results):
        return [value for value in nested if value in block.results]
    lengths = {value: len(text(part, names)) for value, part in nested.items()}
    if len(nested) > 2 * _SEVERAL:
        return sorted(nested, key=lengths.__getitem__)[len(nested) // 2 :]
    half = sum(len(line.strip()) for line in lines) / 2

    def unfit(value: Value) -> tuple[bool, float]:
        return value in block.results, abs(lengths[value] - half)

    return sorted(nested, key=unfit)[:1]


def _too_long(lines: list[str], block: Block, place: int) -> bool:
    """Broken, though it holds an expression that could stand alone.

    What is returned may have its arguments on a line of their own; control flow has
    lines of its own anyway.
    """
    if any(len(line) > WIDTH for line in lines):
        return True
    if place == len(block.statements):
        grouped = lines[0].endswith("return (")  # a sum or product in brackets
        return len(lines) > 1 and (len(lines) != 3 or grouped)
    return len(lines) > 1 and isinstance(block.statements[place], Assign)
