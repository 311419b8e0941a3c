"""Parse the text of a program, as `printed` writes it; weights read zeros."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from burnish.codegen.program import (
    Assign,
    Block,
    Expression,
    If,
    Level,
    Loop,
    Program,
    Scope,
    Shape,
    Source,
    Statement,
    Value,
    Weight,
)
from tests.harness.program_expressions import Expressions, plain, syntax

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_VALUE = re.compile(
    rf"(?P<name>\w+)(?: (?P<hint>{_QUOTED}))?: (?P<host>host )?"
    rf"(?P<nonnegative>nonnegative )?(?P<dtype>\w+)\[(?P<sizes>(?:{_QUOTED}|[^\]])*)\]"
)
_WEIGHT = re.compile(
    rf"weight (?P<name>\w+) (?P<path>{_QUOTED}): (?P<fixed>fixed )?"
    r"(?P<passing>passing )?(?:of (?P<source>\w+)(?:\((?P<of>[^)]*)\))? )?"
    r"(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\]"
)
_LEVEL = re.compile(rf"({_QUOTED}|\w+)(?::({_QUOTED}|\w+))?(?:#(\d+))?(?:\.|$)")
_SCOPE = re.compile(rf"  # ((?:{_QUOTED}|[\w:#.])+)$")
_INDENT = 4


def parsed(text: str) -> Program:
    """The program that a text describes; its weights read zeros.

    Raises ValueError with the line that is no part of a program.
    """
    return _Parser(text).program()


class _Parser(Expressions):
    def __init__(self, text: str) -> None:
        super().__init__()
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        self.lines = [line[margin:] for line in lines]
        self.at = 0
        self.sources: dict[str, Source] = {}

    # --- lines ---

    def take(self, start: str, depth: int = 0) -> str | None:
        """The rest of the next line if it starts so at that depth."""
        begin = " " * (_INDENT * depth) + start
        if self.at < len(self.lines) and self.lines[self.at].startswith(begin):
            self.at += 1
            return self.lines[self.at - 1][len(begin) :]
        return None

    def each(self, start: str, depth: int = 0) -> Iterator[str]:
        """The rest of every next line that starts so."""
        while (line := self.take(start, depth)) is not None:
            yield line

    def program(self) -> Program:
        for line in self.each("weight "):
            self.weight(f"weight {line}")
        inputs, optional = [], {}
        for line in self.each("input "):
            [value], default = self.declared(line)
            inputs.append(value)
            if default:
                optional[value] = plain(syntax(default[3:]))
        body = self.block(0)
        outputs = [self.matched(_OUTPUT, line) for line in self.each("output ")]
        unknown = [line.partition(": ") for line in self.each("unknown ")]
        if self.at < len(self.lines):
            raise ValueError(f"expected a program's line, got {self.lines[self.at]!r}")
        return Program(
            inputs,
            optional,
            body,
            [ast.literal_eval(o["hint"]) for o in outputs],
            [(_dtype(o), _shape(o["sizes"])) for o in outputs],
            {
                ast.literal_eval(name): list(ast.literal_eval(f"({nodes},)"))
                for name, _, nodes in unknown
            },
        )

    def matched(self, form: re.Pattern[str], line: str) -> re.Match[str]:
        found = form.match(line)
        if found is None:
            raise ValueError(f"expected a declaration as printed, got {line!r}")
        return found

    def weight(self, line: str) -> None:
        found = self.matched(_WEIGHT, line)
        dtype, shape = found["dtype"], _shape(found["sizes"])
        sizes = tuple(size for size in shape or () if isinstance(size, int))
        source = None
        if (name := found["source"]) and found["of"]:
            size, *flags = found["of"].split(", ")
            self.sources[name] = Source(int(size), **dict.fromkeys(flags, True))
        if name:
            source = self.sources[name]
        self.known[found["name"]] = Weight(
            ast.literal_eval(found["path"]),
            dtype,
            sizes,
            lambda: np.zeros(sizes, dtype),
            trained=not found["fixed"],
            source=source,
            persistent=not found["passing"],
        )

    def declared(self, line: str) -> tuple[tuple[Value, ...], str]:
        """The values that a line declares, separated by commas; what follows them."""
        values, at = [], 0
        while True:
            found = self.matched(_VALUE, line[at:])
            name, hint = found["name"], found["hint"]
            value = Value(
                ast.literal_eval(hint) if hint else name,
                _dtype(found),
                _shape(found["sizes"]),
                bool(found["host"]),
                bool(found["nonnegative"]),
            )
            self.known[name] = value
            values.append(value)
            at += found.end()
            if not line.startswith(", ", at):
                return tuple(values), line[at:]
            at += 2

    # --- statements ---

    def block(self, depth: int) -> Block:
        statements = []
        while (result := self.take("return", depth)) is None:
            line = self.take("", depth)
            if line is None:
                raise ValueError("expected a block that ends with return")
            statements.append(self.statement(line, depth))
        results = syntax(f"[{result}]")
        assert isinstance(results, ast.List)
        return Block(statements, [self.expression(e) for e in results.elts])

    def statement(self, line: str, depth: int) -> Statement:
        scope: Scope = ()
        if found := _SCOPE.search(line):
            line, scope = line[: found.start()], _scope(found[1])
        known = dict(self.known)  # declarations here are not read here
        targets, right = self.declared(line)
        defined, self.known = self.known, known
        right = right.removeprefix(" = ")
        made: Statement
        if right == "loop:":
            made = self.loop(depth + 1)
        elif right.startswith("if "):
            condition = self.expression(syntax(right[3:-1]))
            then = self.block(depth + 1)
            if self.take("else:", depth) is None:
                raise ValueError(f"expected an else for {line!r}")
            made = If((), (), condition, then, self.block(depth + 1))
        else:
            made = Assign((), (), self.expression(syntax(right)))
        self.known = defined | self.known
        made.targets, made.scope = targets, scope
        return made

    def started(self, line: str) -> tuple[Value, Expression]:
        """A value that a line declares, and what stands behind it."""
        known = dict(self.known)
        [value], start = self.declared(line)
        defined, self.known = self.known, known
        made = self.expression(syntax(start[3:]))
        self.known = defined
        return value, made

    def loop(self, depth: int) -> Loop:
        made = Loop(())
        for word in ("count", "items", "condition"):
            for line in self.each(f"@{word} ", depth):
                setattr(made, word, self.expression(syntax(line)))
        for word in ("going", "index"):
            for line in self.each(f"@{word} ", depth):
                [value], _ = self.declared(line)
                setattr(made, word, value)
        for line in self.each("@beside ", depth):
            made.beside += (self.started(line),)
        for line in self.each("@carry ", depth):
            value, start = self.started(line)
            made.initial += (start,)
            made.carried += (value,)
        for line in self.each("@collected ", depth):
            made.collected = int(line)
        made.body = self.block(depth)
        return made


_OUTPUT = re.compile(
    rf"(?P<hint>{_QUOTED}): (?P<dtype>\w+)\[(?P<sizes>(?:{_QUOTED}|[^\]])*)\]"
)


def _dtype(found: re.Match[str]) -> str | None:
    return None if found["dtype"] == "any" else found["dtype"]


def _shape(text: str) -> Shape | None:
    if text == "...":
        return None
    sizes = syntax(f"[{text}]")
    assert isinstance(sizes, ast.List)
    return tuple(map(_size, sizes.elts))


def _size(e: ast.expr) -> int | str | None:
    if isinstance(e, ast.Name):
        return None if e.id == "_" else e.id
    size: int | str = ast.literal_eval(e)
    return size


def _scope(text: str) -> Scope:
    levels = []
    for name, kind, call in _LEVEL.findall(text):
        levels.append(Level(_unquoted(name), _unquoted(kind), int(call or 0)))
    return tuple(levels)


def _unquoted(text: str) -> str:
    return ast.literal_eval(text) if text[:1] in ("'", '"') else text
