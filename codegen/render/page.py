"""Render classes and the whole module through the templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnish.codegen.extensions.environment import filled
from burnish.codegen.program import (
    Call,
    ClassPlan,
    Expression,
    Literal,
    Name,
    Plan,
    Unwritten,
    every_expression,
    walk,
)
from burnish.codegen.render.annotate import Annotations, annotated
from burnish.codegen.render.forward import forward
from burnish.codegen.render.layout import WIDTH, broken_signature, fits, laid_out
from burnish.codegen.render.names import input_names
from burnish.codegen.render.roles import Roles, residuals, roles_of
from burnish.codegen.render.unwritten import methods
from burnish.codegen.render.words import attribute, literal, text


@dataclass(frozen=True)
class Header:
    """The header lines: the model, and its origin."""

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


_OURS = frozenset(("Tensor", "generation", "nn", "ops", "self", "math"))


_IMPORTED = ("Tensor", "generation", "nn", "ops")


def _types(plan: Plan, header: Header) -> dict[str, Annotations]:
    """The annotations of every class, none where the source is not to have any."""
    if not header.typed:
        return {}
    names = input_names(plan.classes[-1].inputs)
    return annotated(plan, [v for v, name in names.items() if name in header.optional])


def _imports(
    plan: Plan, types: Mapping[str, Annotations], more: tuple[str, ...]
) -> list[str]:
    """Import lines for the names that classes use, in isort's order."""
    names = {name for each in plan.classes for name in _functions(each)}
    for each in plan.classes if types else ():
        names |= set(re.findall(r"\w+", types[each.name].words()))
        names |= {
            "Tensor"
            for made in each.members
            if "Tensor" in _target(*made, types[each.name])
        }
    used = {"nn"} | {name.partition(".")[0].partition("(")[0] for name in names}
    burnish = [name for name in _IMPORTED if name in used] + [*more]
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
    body = forward(plan, header is not None or plan.is_part, roles, values)
    names = body.names
    members = _in_order(plan.members, body.uses)
    own = bool(plan.block.results)  # else what it extends has a forward
    init = [line for each in plan.divided for line in _check(*each)]
    init += [
        line
        for name, made in members
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
        body.lines if own else [],
        methods(plan),
    )


def _in_order(
    members: list[tuple[str, Expression]], uses: list[str]
) -> list[tuple[str, Expression]]:
    """The members as they are used; numbers that are kept, and the base class, first.

    An export of the module does what `forward` says in that order, so that its source
    is this one again. A `forward` that leaves members out says no order.
    """
    calls = [any(isinstance(e, Call) for e in walk(made)) for _, made in members]
    first = calls.index(True) if True in calls else len(members)
    rank = {name: place for place, name in enumerate(uses)} | {"": -1}
    if any(name not in rank for name, _ in members[first:]):
        return members
    return members[:first] + sorted(members[first:], key=lambda each: rank[each[0]])


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
    strings = [f'f"{" ".join(ends)}"']
    if not fits(" " * 16 + strings[0]):
        strings = [f'f"{ends[0]} "', f'f"{ends[1]}"']
    lines = [f"                {each}" for each in strings]
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
    """A class's docstring: its shape contract, or its description."""
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
