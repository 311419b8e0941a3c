"""One file: the runtime's definitions that a model reaches, in order, under one roof.

Each definition keeps its own text and comments. What changes are names that two
modules have, or that are looked up in another module, and members that nobody asks for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from burnish.codegen.standalone.fold import Edit, applied
from burnish.codegen.standalone.names import (
    BUILTINS,
    CORE,
    STANDINS,
    Outside,
    Page,
    Symbol,
    Use,
    home,
    page,
    uses,
)
from burnish.codegen.standalone.reach import (
    INIT,
    SPACES,
    Reached,
    definition,
    members,
    reach,
)

_KEPT_NAMES = frozenset(
    (
        *(space.rpartition(".")[2] for space in SPACES),
        *("np", "SimpleNamespace", "WEIGHTS", "GOLDEN"),
    )
)
_FIRST = ("arrays", "operator", "steps")
"""The parts of `core` that everything stands on."""

_WIDTH = 88

_ANY = Outside("typing", "Any", "Any")
_NAMESPACE = Outside("types", "SimpleNamespace", "SimpleNamespace")


@dataclass
class Runtime:
    """outside: what is imported of Python's and NumPy's. text: the definitions."""

    outside: set[Outside]
    text: str


def runtime(model: Page) -> Runtime:
    """What a model's page needs, as text that stands before it."""
    reached = reach(model)
    writer = _Writer(reached, model)
    text = writer.written()
    words = set(re.findall(r"\w+", text + model.text))
    every = {*reached.outside, *writer.needed}
    return Runtime({each for each in every if words & {each.known_as}}, text)


def import_lines(outside: Iterable[Outside]) -> list[str]:
    """Imports as a linter sorts them, NumPy behind Python's own."""
    ours = [each for each in outside if each.module.partition(".")[0] == "numpy"]
    rest = [each for each in outside if each not in ours]
    lines: list[str] = []
    for group in (rest, ours):
        if lines and group:
            lines.append("")
        lines += sorted({each.line() for each in group if not each.name})
        named = sorted({each.module for each in group if each.name})
        for module in named:
            names = sorted(
                {
                    e.line().partition(" import ")[2]
                    for e in group
                    if e.name and e.module == module
                }
            )
            lines.append(f"from {module} import {', '.join(names)}")
    return lines


@dataclass
class _Writer:
    reached: Reached
    model: Page
    needed: set[Outside] = field(default_factory=lambda: {_NAMESPACE})

    def written(self) -> str:
        self._find_uses()
        self.names = self._named()
        parts: list[str] = []
        module = ""
        done: set[int] = set()
        for symbol in self._ordered():
            stmts = [s for s in definition(symbol) if id(s) not in done]
            done.update(map(id, stmts))
            if stmts and symbol.module != module:
                module = symbol.module
                parts.append(_heading(module))
            parts += [self._text(symbol, stmt) for stmt in stmts]
        return _laid_out([*parts, *self._spaces()])

    # --- what refers to what ---

    def _find_uses(self) -> None:
        self.uses: dict[Symbol, list[Use]] = {}
        for symbol in self.reached.symbols:
            found = page(symbol.module)
            self.uses[symbol] = [
                use
                for stmt in definition(symbol)
                for part in self._parts(symbol, stmt)
                for use in uses(found, part, within=stmt)
            ]

    def _parts(self, symbol: Symbol, stmt: ast.stmt) -> Iterator[ast.AST]:
        """A statement, or what of a class is taken."""
        if not isinstance(stmt, ast.ClassDef):
            yield stmt
            return
        yield from (*stmt.decorator_list, *stmt.bases, *stmt.keywords)
        yield from self._taken(symbol, stmt)

    def _taken(self, symbol: Symbol, node: ast.ClassDef) -> list[ast.stmt]:
        named = {id(stmt): name for name, stmt in members(node)}
        taken = self.reached.symbols[symbol]
        kept: list[ast.stmt] = []
        before = True
        for stmt in node.body:
            if _is_text(stmt) and stmt is not node.body[0]:
                keep = before  # the text about the attribute above it
            else:
                keep = named.get(id(stmt), "") in taken or id(stmt) not in named
            if keep:
                kept.append(stmt)
            before = keep
        return kept

    # --- order ---

    def _ordered(self) -> list[Symbol]:
        """Definitions in the runtime's order, each behind what making it takes."""
        rank = {name: n for n, name in enumerate(self._modules())}
        made: dict[Symbol, None] = {}

        def emit(symbol: Symbol) -> None:
            if symbol in made or symbol in open_:
                return
            open_.add(symbol)
            for other in self._before(symbol):
                emit(other)
            made[symbol] = None

        open_: set[Symbol] = set()
        for symbol in sorted(
            self.reached.symbols,
            key=lambda s: (rank[s.module], page(s.module).made[s.name].lineno, s.name),
        ):
            emit(symbol)
        return list(made)

    def _modules(self) -> list[str]:
        """Modules of reached definitions, each behind those that it imports."""
        wanted = {symbol.module for symbol in self.reached.symbols}
        order: dict[str, None] = {}
        seen: set[str] = set()

        def visit(module: str) -> None:
            if module in seen:
                return
            seen.add(module)
            for target in page(module).imported.values():
                if isinstance(target, Symbol):
                    for near in (target.module, f"{target.module}.{target.name}"):
                        if home(near) in wanted:
                            visit(home(near))
            order[module] = None

        core = [f"{CORE}.{part}" for part in dict.fromkeys(STANDINS.values())]
        first = ["burnish.errors", *(f"{CORE}.{part}" for part in _FIRST)]
        rest = sorted(wanted.difference(core))
        for module in (name for name in (*first, *rest, *core) if name in wanted):
            visit(module)
        return list(order)

    def _before(self, symbol: Symbol) -> list[Symbol]:
        """What a definition needs while it is made: also what is called for it."""
        found: dict[Symbol, None] = {}
        called: set[Symbol] = set()

        def call(each: Symbol) -> None:
            if each in called:
                return
            called.add(each)
            for use in self.uses.get(each, ()):
                need(use)

        def need(use: Use) -> None:
            target = use.target
            if use.annotation:
                return
            if isinstance(target, Symbol) and target in self.reached.symbols:
                found[target] = None
                if isinstance(definition(target)[0], ast.FunctionDef):
                    call(target)

        for use in self.uses[symbol]:
            if not use.late:
                need(use)
        found.pop(symbol, None)
        return list(found)

    # --- names ---

    def _named(self) -> dict[Symbol, str]:
        """A name of its own for each definition, the one it has where that is free."""
        outside = {*self.reached.outside, *self.needed}
        taken = {each.known_as for each in outside} | BUILTINS | _KEPT_NAMES
        taken |= self.model.made.keys()
        local: dict[Symbol, set[str]] = {}
        for every in self.uses.values():
            for use in every:
                if isinstance(use.target, Symbol):
                    bound = use.local
                    if isinstance(use.node, ast.Name):
                        bound = bound - {use.node.id}
                    local.setdefault(use.target, set()).update(bound)
        names: dict[Symbol, str] = {}
        ranked = sorted(
            self.reached.symbols,
            key=lambda s: (not s.module.startswith(CORE), s.name.startswith("_"), s),
        )
        for symbol in ranked:
            hidden = local.get(symbol, set())
            for name in _candidates(symbol):
                if name not in taken and name not in hidden:
                    break
            names[symbol] = name
            taken.add(name)
        return names

    # --- text ---

    def _text(self, symbol: Symbol, stmt: ast.stmt) -> str:
        found = page(symbol.module)
        places = found.places
        start, stop = places.first_line(stmt), places.line_after(stmt)
        edits = [
            edit
            for use in self.uses[symbol]
            if start <= places.start(use.node) < stop
            for edit in self._edit(found, use)
        ]
        edits += self._notes(symbol, stmt, found)
        edits += self._own_name(symbol, stmt, found)
        if isinstance(stmt, ast.ClassDef):
            edits += self._left_out(symbol, stmt, found)
        start = _with_comments(places.text, start)
        stop = _with_docstring(found, stmt, stop)
        shifted = [Edit(e.start - start, e.stop - start, e.text) for e in _outer(edits)]
        text = applied(places.text[start:stop], shifted)
        return "\n".join(part for line in text.split("\n") for part in _broken(line))

    def _edit(self, found: Page, use: Use) -> Iterator[Edit]:
        places, target = found.places, use.target
        if isinstance(use.node, ast.stmt):
            yield Edit(places.first_line(use.node), places.line_after(use.node), "")
            return
        if isinstance(target, Outside) or use.annotation:
            return
        if not target.name:
            return
        if use.space == "burnish.ops" and use.late:
            return  # `ops.relu` stays as it is
        name = self.names[target]
        if places.source(use.node) != name:
            yield Edit(places.start(use.node), places.stop(use.node), name)

    def _notes(self, symbol: Symbol, stmt: ast.stmt, found: Page) -> Iterator[Edit]:
        """Annotations, `Any` where they name what is not there."""
        for part in self._parts(symbol, stmt):
            for note in _annotations(part):
                every = list(uses(found, note, note=True))
                targets = [u.target for u in every]
                ours = [t for t in targets if isinstance(t, Symbol)]
                if all(t in self.names for t in ours):
                    for use in every:
                        if isinstance(use.target, Symbol):
                            name = self.names[use.target]
                            yield Edit(
                                found.places.start(use.node),
                                found.places.stop(use.node),
                                name,
                            )
                        else:
                            self.needed.add(use.target)
                else:
                    self.needed.add(_ANY)
                    yield Edit(found.places.start(note), found.places.stop(note), "Any")

    def _own_name(self, symbol: Symbol, stmt: ast.stmt, found: Page) -> Iterator[Edit]:
        """The new name where a definition says its own."""
        places = found.places
        if isinstance(stmt, ast.FunctionDef | ast.ClassDef):
            name = self.names[symbol]
            if name != symbol.name:
                word = "class " if isinstance(stmt, ast.ClassDef) else "def "
                start = places.start(stmt) + len(word)
                yield Edit(start, start + len(symbol.name), name)
                for each in ast.walk(stmt):
                    if isinstance(each, ast.Global) and symbol.name in each.names:
                        raise AssertionError(f"global {symbol.name}")
            return
        for each in ast.walk(stmt):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                name = self.names.get(Symbol(found.name, each.id), each.id)
                if name != each.id:
                    yield Edit(places.start(each), places.stop(each), name)

    def _left_out(
        self, symbol: Symbol, node: ast.ClassDef, found: Page
    ) -> Iterator[Edit]:
        """Members that nobody asks for, with the comments above them."""
        places = found.places
        kept = {id(stmt) for stmt in self._taken(symbol, node)}
        body = node.body
        for number, stmt in enumerate(body):
            start = (
                places.line_after(body[number - 1])
                if number
                else places.first_line(stmt)
            )
            if id(stmt) not in kept:
                yield Edit(start, places.line_after(stmt), "")
        if not kept:
            last = places.line_after(body[-1])
            yield Edit(last, last, f"{' ' * body[0].col_offset}pass\n")

    def _spaces(self) -> list[str]:
        """`ops`, `nn` and the like, with what is asked of them."""
        parts = ["# --- The names that the model calls these by ---"]
        spaces = dict(self.reached.spaces)
        if init := spaces.pop(INIT, {}):
            spaces.setdefault("burnish.nn", {})
        for space in SPACES:
            if space not in spaces:
                continue
            rows = [
                f"    {name}={self.names[s]},\n"
                for name, s in sorted(spaces[space].items())
            ]
            if init and space == "burnish.nn":
                inner = "".join(
                    f"        {name}={self.names[s]},\n"
                    for name, s in sorted(init.items())
                )
                rows.append(f"    init=SimpleNamespace(\n{inner}    ),\n")
            name = space.rpartition(".")[2]
            parts.append(f"{name} = SimpleNamespace(\n{''.join(rows)})")
        return parts


def _laid_out(parts: list[str]) -> str:
    """Parts with two empty lines around definitions and headings, else with one."""
    text, before = "", ""
    for part in map(str.strip, parts):
        apart = any(_is_block(each) for each in (before, part) if each)
        text += ("\n\n\n" if apart else "\n\n") * bool(before) + part
        before = part
    return text


def _broken(line: str) -> list[str]:
    """A line that a longer name made too long, broken at its last brackets."""
    if len(line) <= _WIDTH:
        return [line]
    pad = " " * (len(line) - len(line.lstrip()))
    for opened, closed in reversed(_brackets(line)):
        inner = line[opened + 1 : closed]
        if inner and len(f"{pad}    {inner}") <= _WIDTH:
            return [line[: opened + 1], f"{pad}    {inner}", f"{pad}{line[closed:]}"]
    return [line]


def _brackets(line: str) -> list[tuple[int, int]]:
    """Pairs of brackets that are in no others."""
    pairs, open_ = [], []
    for place, character in enumerate(line):
        if character in "([{":
            open_.append(place)
        elif character in ")]}" and open_:
            start = open_.pop()
            if not open_:
                pairs.append((start, place))
    return pairs


def _is_block(part: str) -> bool:
    lines = part.splitlines()
    first = next((line for line in lines if not line.startswith("#")), lines[0])
    return first.startswith(("@", "class ", "def ", "#"))


def _candidates(symbol: Symbol) -> Iterator[str]:
    yield symbol.name
    stem = symbol.module.rpartition(".")[2].strip("_")
    private = "_" if symbol.name.startswith("_") else ""
    base = f"{private}{stem}_{symbol.name.strip('_')}"
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def _heading(module: str) -> str:
    """A line that says what a module of the runtime holds."""
    said = ast.get_docstring(page(module).tree) or module
    first = said.splitlines()[0].rstrip(".")
    return f"# --- {first} ---" if len(first) <= 78 else f"# {first}"


def _is_text(stmt: ast.stmt) -> bool:
    return (
        isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Constant)
        and isinstance(stmt.value.value, str)
    )


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    for each in ast.walk(node):
        for name in ("annotation", "returns"):
            note = getattr(each, name, None)
            if isinstance(note, ast.expr):
                yield note


def _outer(edits: Iterable[Edit]) -> list[Edit]:
    """Edits without those that lie inside another."""
    kept: list[Edit] = []
    for edit in sorted(set(edits), key=lambda e: (e.start, -e.stop)):
        if not kept or edit.start >= kept[-1].stop or kept[-1].start == kept[-1].stop:
            kept.append(edit)
    return kept


def _with_comments(text: str, start: int) -> int:
    """The start of the comment lines right above a statement."""
    while start:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].startswith("#") or text[line:start].startswith("# ---"):
            break
        start = line
    return start


def _with_docstring(found: Page, stmt: ast.stmt, stop: int) -> int:
    """The end of the text that says what an assigned name is."""
    body = found.tree.body
    number = body.index(stmt) + 1
    assigned = isinstance(stmt, ast.Assign | ast.AnnAssign) and number < len(body)
    said = assigned and _is_text(body[number])
    return found.places.line_after(body[number]) if said else stop
