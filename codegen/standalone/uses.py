"""Find the names in a part of a module's source that refer to definitions outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from burnish.codegen.errors import ConversionError
from burnish.codegen.standalone.names import (
    COMPREHENSIONS,
    Outside,
    Page,
    Symbol,
    imports,
    once_a_part,
    resolved,
    stored,
)


class Use(NamedTuple):
    """A name in a page that refers to a definition outside of its function.

    node: the name, or the attribute of a module. local: names that functions around it
    bind. late: it is looked up when a function is called. space: the module whose
    attribute it is.
    """

    node: ast.Name | ast.Attribute | ast.stmt
    target: Symbol | Outside
    local: frozenset[str]
    late: bool
    annotation: bool
    space: str = ""


@dataclass
class _Scope:
    names: frozenset[str]
    imported: dict[str, Symbol | Outside]
    is_class: bool = False


@once_a_part
def uses(
    found: Page, node: ast.AST, *, within: ast.AST | None = None, note: bool = False
) -> list[Use]:
    """Every use of something outside in a part of a page.

    within: the class that it is a member of. note: it is an annotation.
    """
    scopes = []
    if isinstance(within, ast.ClassDef) and node is not within:
        scopes.append(_Scope(_class_names(within), {}, True))
    return list(_Walker(found).walk(node, scopes, False, note))


def _class_names(node: ast.ClassDef) -> frozenset[str]:
    named = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return frozenset(named.union(*map(stored, node.body)))


class _Walker:
    def __init__(self, found: Page):
        self.page = found

    def walk(
        self, node: ast.AST, scopes: list[_Scope], late: bool, annotation: bool
    ) -> Iterator[Use]:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from self._function(node, scopes, late, annotation)
        elif isinstance(node, ast.ClassDef):
            for part in (*node.decorator_list, *node.bases, *node.keywords):
                yield from self.walk(part, scopes, late, annotation)
            inner = [*scopes, _Scope(_class_names(node), {}, True)]
            for stmt in node.body:
                yield from self.walk(stmt, inner, late, annotation)
        elif isinstance(node, COMPREHENSIONS):
            names = frozenset().union(*(stored(g.target) for g in node.generators))
            for child in ast.iter_child_nodes(node):
                yield from self.walk(
                    child, [*scopes, _Scope(names, {})], late, annotation
                )
        elif isinstance(node, ast.AnnAssign):
            yield from self.walk(node.annotation, scopes, late, True)
            for side in (node.target, node.value):
                if side is not None:
                    yield from self.walk(side, scopes, late, annotation)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for _, bound in imports(node):
                if isinstance(bound, Symbol):
                    yield Use(node, bound, _locals(scopes), late, False)
        elif isinstance(node, ast.Name):
            target = self._named(node.id, scopes, annotation)
            if target is not None and isinstance(node.ctx, ast.Load):
                yield Use(node, target, _locals(scopes), late, annotation)
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(node, scopes, late, annotation)
        else:
            for child in ast.iter_child_nodes(node):
                yield from self.walk(child, scopes, late, annotation)

    def _function(
        self,
        node: ast.FunctionDef | ast.Lambda,
        scopes: list[_Scope],
        late: bool,
        annotation: bool,
    ) -> Iterator[Use]:
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        every += [a for a in (args.vararg, args.kwarg) if a]
        for part in (*args.defaults, *(d for d in args.kw_defaults if d)):
            yield from self.walk(part, scopes, late, annotation)
        body: list[Any] = [node.body] if isinstance(node, ast.Lambda) else node.body
        if isinstance(node, ast.FunctionDef):
            for part in node.decorator_list:
                yield from self.walk(part, scopes, late, annotation)
            annotations = [*(a.annotation for a in every), node.returns]
            for note in annotations:
                if note is not None:
                    yield from self.walk(note, scopes, late, True)
        names = {a.arg for a in every}.union(*map(stored, body))
        names |= {each.name for each in body if isinstance(each, ast.FunctionDef)}
        imported: dict[str, Symbol | Outside] = {}
        for each in ast.walk(node):
            if isinstance(each, ast.Import | ast.ImportFrom):
                found = dict(imports(each))
                imported.update(
                    {k: v for k, v in found.items() if isinstance(v, Symbol)}
                )
                names |= {k for k, v in found.items() if isinstance(v, Outside)}
            elif isinstance(each, ast.Global):
                names -= set(each.names)
        inner = [*scopes, _Scope(frozenset(names) - imported.keys(), imported)]
        for part in body:
            yield from self.walk(part, inner, True, annotation)

    def _attribute(
        self, node: ast.Attribute, scopes: list[_Scope], late: bool, annotation: bool
    ) -> Iterator[Use]:
        target = self._module(node.value, scopes, annotation)
        if target is not None:
            inner = resolved(target.module, node.attr)
            if inner is None and annotation:
                inner = Symbol("", node.attr)
            if inner is None:
                raise unknown(self.page.name, target.module, node.attr)
            local = _locals(scopes)
            yield Use(node, inner, local, late, annotation, target.module)
            return
        yield from self.walk(node.value, scopes, late, annotation)

    def _module(
        self, node: ast.expr, scopes: list[_Scope], annotation: bool
    ) -> Symbol | None:
        """The module that `ops` or `nn.init` is; None for anything else."""
        target: Symbol | Outside | None = None
        if isinstance(node, ast.Name):
            target = self._named(node.id, scopes, annotation)
        elif isinstance(node, ast.Attribute):
            outer = self._module(node.value, scopes, annotation)
            target = outer and resolved(outer.module, node.attr)
        return target if isinstance(target, Symbol) and not target.name else None

    def _named(
        self, name: str, scopes: list[_Scope], annotation: bool
    ) -> Symbol | Outside | None:
        """The definition that a name refers to; None for local and built-in names."""
        for depth, scope in enumerate(reversed(scopes)):
            if scope.is_class and depth:
                continue
            if name in scope.imported:
                target = scope.imported[name]
                return resolved(*target) if isinstance(target, Symbol) else target
            if name in scope.names:
                return None
        if name in self.page.made:
            return Symbol(self.page.name, name)
        if name in self.page.imported:
            target = self.page.imported[name]
            if isinstance(target, Outside):
                return target
            found = resolved(*target)
            if found is None and annotation:
                return Symbol("", name)
            if found is None:
                raise unknown(self.page.name, *target)
            return found
        if name == "np":
            return Outside("numpy", "", "np")
        return None


def unknown(page: str, module: str, name: str) -> ConversionError:
    """The error for code that a single file cannot contain."""
    return ConversionError(
        f"--standalone: {page} uses {module}.{name}, which has no form for NumPy "
        f"alone; generate without --standalone, for use with the package burnish"
    )


def _locals(scopes: list[_Scope]) -> frozenset[str]:
    return frozenset().union(*(s.names for s in scopes if not s.is_class))
