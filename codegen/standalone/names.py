"""Resolve the names in a module's source to definitions.

A name in a module is a definition there, something imported from another module of the
runtime, a module of it, or something of Python's and NumPy's own.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import util
from itertools import chain
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from burnish.codegen.errors import ConversionError
from burnish.codegen.standalone.fold import Edit, Places, applied, folded

P = ParamSpec("P")
T = TypeVar("T")

CORE = "burnish.codegen.standalone.core"

STANDINS = {
    "burnish._engine.arguments": "module",
    "burnish.autodiff": "arrays",
    "burnish.backend": "arrays",
    "burnish.backend.device": "arrays",
    "burnish.backend.namespace": "arrays",
    "burnish.habits": "arrays",
    "burnish.nn.core.holding": "module",
    "burnish.nn.core.layer": "module",
    "burnish.nn.core.module": "module",
    "burnish.nn.core.param": "module",
    "burnish.operator": "operator",
    "burnish.rng": "rng",
    "burnish.steps": "steps",
    "burnish.tensor": "tensor",
}
"""Modules of the runtime, and the part of `core` that replaces each."""


class Symbol(NamedTuple):
    """A definition of a module; a module itself where name is ""."""

    module: str
    name: str


class Outside(NamedTuple):
    """A name of Python's or NumPy's: `import module` or `from module import name`."""

    module: str
    name: str
    known_as: str

    def line(self) -> str:
        if not self.name:
            known = f" as {self.known_as}" if self.known_as != self.module else ""
            return f"import {self.module}{known}"
        known = f" as {self.known_as}" if self.known_as != self.name else ""
        return f"from {self.module} import {self.name}{known}"


@dataclass
class Page:
    """A module's source, and the names bound at its top level.

    made: the statement that defines a name. more: statements that add to it. imported:
    what a name was imported as. analyses: results of `once_a_part`.
    """

    name: str
    text: str
    tree: ast.Module
    places: Places
    made: dict[str, ast.stmt] = field(default_factory=dict)
    more: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, Symbol | Outside] = field(default_factory=dict)
    analyses: dict[tuple[object, ...], Any] = field(default_factory=dict)


def once_a_part(analysis: Callable[P, T]) -> Callable[P, T]:
    """Run an analysis of a page once for each part of its tree.

    It takes the page, then parts of it and options. The runtime's pages are read once
    in a process, so that every file that is written shares what was found in them.
    """

    @functools.wraps(analysis)
    def known(*args: P.args, **kwargs: P.kwargs) -> T:
        found, *parts = args
        assert isinstance(found, Page)
        key = (analysis, *parts, *kwargs.items())  # parts of a tree have identity
        if key not in found.analyses:
            found.analyses[key] = analysis(*args, **kwargs)
        return cast("T", found.analyses[key])

    return known


FACTS: ContextVar[frozenset[str]] = ContextVar("FACTS", default=frozenset())
"""Which of the constants of `core` are True for the model that is written."""

NAMED: ContextVar[frozenset[str] | None] = ContextVar("NAMED", default=None)
"""Names by which layers may be chosen; None is any."""

_OF_MODELS = {f"{CORE}.module": "TABLES", f"{CORE}.weights": "QUANTIZED"}
CHOICES = "burnish.nn.choose"
"""The module where layers are chosen by a name."""


def page(module: str) -> Page:
    """A module of the runtime as it is for NumPy alone."""
    facts = FACTS.get() if module in _OF_MODELS else frozenset()
    return _page(module, facts, NAMED.get() if module == CHOICES else None)


@functools.cache
def _page(module: str, facts: frozenset[str], named: frozenset[str] | None) -> Page:
    spec = util.find_spec(module)
    loader: Any = spec and spec.loader
    text = loader.get_source(module) if loader else None
    if text is None:
        raise ConversionError(
            f"--standalone: expected the source of {module}, found none"
        )
    if named is not None:
        text = _narrowed(text, named)
    known = {name: name in facts for name in _OF_MODELS.values()}
    return read(module, folded(_without_rules(text), known))


def texts(node: ast.AST) -> set[str]:
    """The texts in a part of a source, as `nn.activation` compares them."""
    found = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {t.lower().replace("_", "") for t in found if isinstance(t, str)}


def _narrowed(text: str, named: frozenset[str]) -> str:
    """A module with those rows of its tables whose keys are among the names."""
    places = Places(text)
    edits = [
        Edit(places.first_line(key), places.line_after(value), "")
        for stmt in ast.parse(text).body
        if isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Dict)
        for key, value in zip(stmt.value.keys, stmt.value.values, strict=True)
        if isinstance(key, ast.Constant) and key.value not in named
    ]
    return applied(text, edits)


def _without_rules(text: str) -> str:
    """Without gradients and kernels of other backends, which no code refers to."""
    places = Places(text)
    edits = [
        Edit(places.first_line(stmt), places.line_after(stmt), "")
        for stmt in ast.parse(text).body
        if isinstance(stmt, ast.FunctionDef) and stmt.name == "_"
    ]
    return applied(text, edits)


def read(module: str, text: str) -> Page:
    """A module's top level."""
    tree = ast.parse(text)
    made = Page(module, text, tree, Places(text))
    lazy = (stmt.body for stmt in tree.body if isinstance(stmt, ast.With))
    for stmt in chain(tree.body, *lazy):
        if isinstance(stmt, ast.Import | ast.ImportFrom):
            made.imported.update(imports(stmt))
        elif isinstance(stmt, ast.FunctionDef | ast.ClassDef):
            made.made[stmt.name] = stmt
        elif isinstance(stmt, ast.Assign | ast.AnnAssign):
            for name in stored(stmt):
                made.made[name] = stmt
        elif isinstance(stmt, ast.AugAssign | ast.Expr):
            made.more.setdefault(_root(stmt), []).append(stmt)
    return made


def _root(stmt: ast.stmt) -> str:
    """`where` of `where.on("numpy")(select)`."""
    node: Any = (
        stmt.target if isinstance(stmt, ast.AugAssign) else getattr(stmt, "value", None)
    )
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def imports(
    stmt: ast.Import | ast.ImportFrom,
) -> Iterator[tuple[str, Symbol | Outside]]:
    """Each name that an import binds, with its target."""
    for alias in stmt.names:
        if isinstance(stmt, ast.Import):
            bound = alias.asname or alias.name.partition(".")[0]
            yield bound, Outside(alias.name, "", alias.asname or alias.name)
        elif is_ours(stmt.module or ""):
            yield alias.asname or alias.name, Symbol(stmt.module or "", alias.name)
        elif stmt.module != "__future__":
            bound = alias.asname or alias.name
            yield bound, Outside(stmt.module or "", alias.name, bound)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "burnish"


def home(module: str) -> str:
    """The module whose source is taken for `module`."""
    part = STANDINS.get(module)
    return f"{CORE}.{part}" if part else module


@functools.cache
def resolved(module: str, name: str) -> Symbol | Outside | None:
    """The definition of a module's name, resolved through imports; None if unknown."""
    found = page(home(module))
    if name in found.made:
        return Symbol(found.name, name)
    if name in found.imported:
        target = found.imported[name]
        if isinstance(target, Outside):
            return target
        if target != Symbol(module, name):
            return resolved(*target)
    return Symbol(f"{module}.{name}", "") if _is_module(f"{module}.{name}") else None


def _is_module(name: str) -> bool:
    try:
        return util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package
        return False


def stored(node: ast.AST) -> set[str]:
    """Names that a statement assigns, without those of functions inside it."""
    found: set[str] = set()
    todo = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            found |= {each.name} if each.name else set()
        for child in ast.iter_child_nodes(each):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                found.add(child.name)
            elif isinstance(child, ast.Import | ast.ImportFrom):
                found.update(n for n, t in imports(child) if isinstance(t, Outside))
            elif not isinstance(child, _SCOPES):
                todo.append(child)
    return found


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ClassDef, *COMPREHENSIONS)
BUILTINS = frozenset(dir(builtins))
