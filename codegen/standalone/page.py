"""Write the single file: the model, and the definitions of the runtime that it reaches.

Each definition keeps its own text and comments. What changes are names that two
modules have, or that are looked up in another module, and members that nothing reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from burnish.codegen.program import demand_order
from burnish.codegen.standalone.fold import Edit, applied
from burnish.codegen.standalone.layout import (
    broken,
    candidates,
    heading,
    is_text,
    laid_out,
    notes_in,
    outermost,
    with_comments,
    with_docstring,
)
from burnish.codegen.standalone.names import (
    BUILTINS,
    CORE,
    STANDINS,
    Outside,
    Page,
    Symbol,
    home,
    page,
)
from burnish.codegen.standalone.reach import (
    INIT,
    SPACES,
    Reached,
    definition,
    members,
    reach,
)
from burnish.codegen.standalone.uses import Use, uses

_KEPT_NAMES = frozenset(
    (
        *(space.rpartition(".")[2] for space in SPACES),
        *("np", "SimpleNamespace", "WEIGHTS", "GOLDEN"),
    )
)
_FIRST = ("arrays", "operator", "steps")
"""The parts of `core` that every page contains."""

_ANY = Outside("typing", "Any", "Any")
_NAMESPACE = Outside("types", "SimpleNamespace", "SimpleNamespace")


@dataclass
class Runtime:
    """outside: imports of Python's and NumPy's modules. text: the definitions."""

    outside: set[Outside]
    text: str


def runtime(model: Page) -> Runtime:
    """The definitions that a model's page needs, as text."""
    reached = reach(model)
    writer = _Writer(reached, model)
    text = writer.written()
    words = set(re.findall(r"\w+", text + model.text))
    every = {*reached.outside, *writer.needed}
    return Runtime({each for each in every if words & {each.known_as}}, text)


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
                parts.append(heading(module))
            parts += [self._text(symbol, stmt) for stmt in stmts]
        return laid_out([*parts, *self._spaces()])

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
            if is_text(stmt) and stmt is not node.body[0]:
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
        symbols = sorted(
            self.reached.symbols,
            key=lambda s: (rank[s.module], page(s.module).made[s.name].lineno, s.name),
        )
        return [*demand_order(symbols, self._before)]

    def _modules(self) -> list[str]:
        """Modules of reached definitions, each behind those that it imports."""
        wanted = {symbol.module for symbol in self.reached.symbols}

        def imports(module: str) -> Iterator[str]:
            for target in page(module).imported.values():
                if isinstance(target, Symbol):
                    near = (target.module, f"{target.module}.{target.name}")
                    yield from (own for own in map(home, near) if own in wanted)

        core = [f"{CORE}.{part}" for part in dict.fromkeys(STANDINS.values())]
        first = ["burnish.errors", *(f"{CORE}.{part}" for part in _FIRST)]
        rest = sorted(wanted.difference(core))
        ends = (name for name in (*first, *rest, *core) if name in wanted)
        return [*demand_order(ends, imports)]

    def _before(self, symbol: Symbol) -> list[Symbol]:
        """The names that a definition evaluates when it is executed, through calls."""
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
            for name in candidates(symbol):
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
        start = with_comments(places.text, start)
        stop = with_docstring(found, stmt, stop)
        shifted = [
            Edit(e.start - start, e.stop - start, e.text) for e in outermost(edits)
        ]
        text = applied(places.text[start:stop], shifted)
        return "\n".join(part for line in text.split("\n") for part in broken(line))

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
        """Annotations, with `Any` for names that the file does not define."""
        for part in self._parts(symbol, stmt):
            for note in notes_in(found, part):
                every = uses(found, note, note=True)
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
        """Unused members, with the comments above them."""
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
        """Namespaces such as `ops` and `nn`, with the attributes that are used."""
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
