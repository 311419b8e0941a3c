"""Which lines of a generated source make, call and define each module."""

from __future__ import annotations

import ast

from burnish.codegen.tools.model_page.boxes import Span


class Lines:
    """Finds the lines of a class, and of an attribute in the class that holds it."""

    def __init__(self, source: str):
        self.classes: dict[str, Span] = {}
        self._made: dict[tuple[str, str], list[Span]] = {}
        self._bases: dict[str, list[str]] = {}
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                self._class(node)

    def of(self, holder: str, attribute: str, kind: str) -> tuple[Span, ...]:
        """Of a module: its class, where the source has it, then its holder's lines.

        holder: the class that holds it; attribute: under this name; kind: its class.
        """
        own = [self.classes[kind]] if kind in self.classes else []
        while holder and (holder, attribute) not in self._made:
            holder = next(iter(self._bases.get(holder, ())), "")
        return tuple(own + self._made.get((holder, attribute), []))

    def _class(self, node: ast.ClassDef) -> None:
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        self.classes[node.name] = Span(first, node.end_lineno or first)
        self._bases[node.name] = [b.id for b in node.bases if isinstance(b, ast.Name)]
        for part in ast.walk(node):
            if isinstance(part, ast.stmt) and not hasattr(part, "body"):
                self._statement(node.name, part)
            elif isinstance(part, ast.For | ast.While | ast.If | ast.With):
                self._head(node.name, part)

    def _statement(self, owner: str, statement: ast.stmt) -> None:
        span = Span(statement.lineno, statement.end_lineno or statement.lineno)
        for name in _attributes(statement):
            self._add(owner, name, span)

    def _head(self, owner: str, block: ast.stmt) -> None:
        """`for block in self.blocks:`"""
        heads = [
            getattr(block, part) for part in ("iter", "test") if hasattr(block, part)
        ]
        for head in heads:
            for name in _attributes(head):
                self._add(owner, name, Span(block.lineno, block.lineno))

    def _add(self, owner: str, name: str, span: Span) -> None:
        spans = self._made.setdefault((owner, name), [])
        if span not in spans:
            spans.append(span)


def _attributes(node: ast.AST) -> list[str]:
    """The names of `self.name` in a piece of source."""
    return [
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    ]
