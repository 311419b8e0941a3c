"""Partially evaluate the runtime's source for NumPy alone, without recording.

Known values replace expressions: `namespace(x)` is `np`, no tape records,
nothing trains. Branches that are never taken then go, and so do statements behind a
`return`. Everything else stays as it is written, comments too: text is edited at the
places that a syntax tree gives, again and again until nothing changes.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_LIBRARY = "np"
_ASKS_LIBRARY = frozenset(("namespace", "library_of"))
_ASKS_KERNELS = frozenset(("_has_kernel", "_is_kept"))
_TRANSPARENT = frozenset(("composed", "explained", "memory_bound", "call", "draw"))
"""Decorators that only say something to error messages, gradients and programs."""

_NEVER = frozenset(("derived", "is_autodiff", "is_balanced"))
"""Attributes that are False of every tensor and device."""

_NONE = frozenset(("node", "on_input", "scheme"))
"""Attributes that are None of every tensor and layer."""

_KNOWN = {
    "TYPE_CHECKING": False,
    "bfloat16.possible()": False,
    "compile is not False": False,
    "device.kind == 'cuda'": False,
    "direct.usable()": False,
    "recording.paused": False,
    "recording.replaying": False,
    "recording.tape is not None": False,
    "self.training": False,
    "'cupy' not in sys.modules": True,
    "np is np": True,
    "np is not np": False,
    "np is symbols.library": False,
    "np.__name__ != 'cupy'": True,
    "np.__name__ == 'numpy'": True,
}


class Edit(NamedTuple):
    """Text between two offsets, replaced."""

    start: int
    stop: int
    text: str


def applied(text: str, edits: Iterable[Edit]) -> str:
    """A text with all of these edits, which do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = f"{text[: edit.start]}{edit.text}{text[edit.stop :]}"
    return text


class Places:
    """Offsets in a text of what a syntax tree places by line and byte."""

    def __init__(self, text: str):
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: Any) -> int:
        return self._offset(node.lineno, node.col_offset)

    def stop(self, node: Any) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)

    def source(self, node: Any) -> str:
        return self.text[self.start(node) : self.stop(node)]

    def first_line(self, node: Any) -> int:
        """Where the line begins on which a statement, or its decorator, does."""
        first = getattr(node, "decorator_list", None) or [node]
        return self._starts[first[0].lineno - 1]

    def line_after(self, node: Any) -> int:
        return self._starts[node.end_lineno]

    def _offset(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column


def folded(text: str, known: dict[str, bool]) -> str:
    """A module's source with everything known put in its place.

    known: more names, and what they are.
    """
    done: set[str] = set()
    while True:
        tree = ast.parse(text)
        finder = _Finder(Places(text), known)
        edits = list(finder.of_module(tree, done))
        if not edits:
            return text
        text = applied(text, edits)


class _Finder:
    def __init__(self, places: Places, known: dict[str, bool]):
        self.places = places
        self.known = _KNOWN | known

    def of_module(self, tree: ast.Module, done: set[str]) -> Iterator[Edit]:
        """Edits of a module's statements but those done, whose source has none."""
        inner: list[Edit] = []
        for stmt in tree.body:
            start, stop = self.places.first_line(stmt), self.places.line_after(stmt)
            source = self.places.text[start:stop]
            if source not in done:
                edits = list(self.within(stmt))
                inner += edits
                if not edits:
                    done.add(source)
        yield from inner or self._of(tree)

    def within(self, node: ast.AST) -> Iterator[Edit]:
        """Edits of a node's parts, or of the node itself where its parts have none."""
        inner = [e for child in ast.iter_child_nodes(node) for e in self.within(child)]
        yield from inner or self._of(node)

    def _of(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.expr):
            made = self._expression(node)
            if made is not None and made != self.places.source(node):
                yield Edit(self.places.start(node), self.places.stop(node), made)
            return
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            yield self._chosen(node)
        elif isinstance(node, ast.FunctionDef):
            yield from self._function(node)
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from self._behind_the_end(block)

    # --- expressions ---

    def _expression(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return None
        if _is_call(node, _ASKS_LIBRARY):
            return _LIBRARY
        if _is_call(node, _ASKS_KERNELS):
            return "False"
        if isinstance(node, ast.BoolOp):
            return self._joined(node)
        if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Constant):
            return self.places.source(node.body if node.test.value else node.orelse)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            known = node.operand
            return str(not known.value) if isinstance(known, ast.Constant) else None
        if isinstance(node, ast.Compare | ast.Call | ast.Attribute | ast.Name):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                return None
            if isinstance(node, ast.Attribute) and node.attr in _NEVER:
                return "False"
            if (constant := _of_none(node)) is not None:
                return constant
            words = ast.unparse(node) if _is_small(node) else ""
            return str(self.known[words]) if words in self.known else None
        return None

    def _joined(self, node: ast.BoolOp) -> str | None:
        """Simplify `and` and `or` by operands of known truth.

        The last may be what they give, `x or None`: it stays, if it is no bool.
        """
        decides = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        for value in node.values:
            if not isinstance(value, ast.Constant):
                kept.append(value)
            elif bool(value.value) is decides:
                kept.append(value)
                break
            elif value is node.values[-1] and not isinstance(value.value, bool):
                kept.append(value)
        if len(kept) == len(node.values):
            return None
        if not kept:
            return str(not decides)
        last = kept[-1]
        if isinstance(last, ast.Constant) and len(kept) > 1:
            return None
        if len(kept) == 1:
            return self.places.source(last)
        inside = self.places.text[self.places.start(kept[0]) : self.places.stop(last)]
        word = " or " if decides else " and "
        whole = node.values.index(last) - node.values.index(kept[0]) + 1
        same = whole == len(kept)
        return inside if same else word.join(map(self.places.source, kept))

    # --- statements ---

    def _chosen(self, node: ast.If) -> Edit:
        """The branch of an `if` that is taken, in its place."""
        places = self.places
        assert isinstance(node.test, ast.Constant)
        start = places.start(node)
        is_elif = places.text[start : start + 4] == "elif"
        body = node.body if node.test.value else node.orelse
        first, stop = places.first_line(node), places.line_after(node)
        pad = " " * node.col_offset
        if not body:
            return Edit(first, stop, "" if is_elif else f"{pad}pass\n")
        begin, end = places.first_line(body[0]), places.line_after(body[-1])
        text = textwrap.dedent(places.text[begin:end])
        if is_elif:
            if isinstance(body[0], ast.If) and body[0].col_offset == node.col_offset:
                return Edit(first, stop, textwrap.indent(text, pad))
            inner = textwrap.indent(text, f"{pad}    ")
            return Edit(first, stop, f"{pad}else:\n{inner}")
        text = text.removeprefix("el") if text.startswith("elif ") else text
        return Edit(first, stop, textwrap.indent(text, pad))

    def _behind_the_end(self, block: list[ast.stmt]) -> Iterator[Edit]:
        """Statements behind a return, and `pass` where there are others."""
        places = self.places
        for number, stmt in enumerate(block[:-1]):
            if isinstance(stmt, ast.Return | ast.Raise):
                yield Edit(places.line_after(stmt), places.line_after(block[-1]), "")
                return
            if isinstance(stmt, ast.Pass):
                yield Edit(
                    places.first_line(stmt), places.first_line(block[number + 1]), ""
                )
                return
        last = block[-1] if block else None
        if len(block) > 1 and isinstance(last, ast.Pass):
            yield Edit(places.line_after(block[-2]), places.line_after(last), "")

    def _function(self, node: ast.FunctionDef) -> Iterator[Edit]:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id in _TRANSPARENT:
                begin = self.places.start(decorator)
                line = self.places.text.rindex("@", 0, begin)
                start = self.places.text.rfind("\n", 0, line) + 1
                yield Edit(start, self.places.line_after(decorator), "")
                return
        yield from self._library_names(node)

    def _library_names(self, node: ast.FunctionDef) -> Iterator[Edit]:
        """`xp`, where all that a function gives it is `np`."""
        stored = [
            n
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and n.id == "xp" and isinstance(n.ctx, ast.Store)
        ]
        if not stored:
            return
        given = [a for a in ast.walk(node) if isinstance(a, ast.Assign)]
        edits = [edit for a in given if (edit := self._without_library(a))]
        if len(edits) != len(stored):
            return
        yield from edits
        for name in ast.walk(node):
            if (
                isinstance(name, ast.Name)
                and name.id == "xp"
                and isinstance(name.ctx, ast.Load)
            ):
                yield Edit(self.places.start(name), self.places.stop(name), _LIBRARY)

    def _without_library(self, node: ast.Assign) -> Edit | None:
        """Remove `xp = np`, also from assignments to several names."""
        target, value, places = node.targets[0], node.value, self.places
        if _is_name(target, "xp") and _is_name(value, _LIBRARY):
            pad = " " * node.col_offset
            return Edit(
                places.first_line(node), places.line_after(node), f"{pad}pass\n"
            )
        if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
            return None
        pairs = list(zip(target.elts, value.elts, strict=False))
        rest = [
            p for p in pairs if not (_is_name(p[0], "xp") and _is_name(p[1], _LIBRARY))
        ]
        if len(rest) == len(pairs) or not rest:
            return None
        sides = (", ".join(places.source(p[i]) for p in rest) for i in (0, 1))
        return Edit(places.start(node), places.stop(node), " = ".join(sides))


def _is_small(node: ast.expr) -> bool:
    """Whether an expression is short enough to be repeated."""
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name()):
            return True
        case ast.Call(
            func=ast.Name() | ast.Attribute(value=ast.Name()), args=[], keywords=[]
        ):
            return True
        case ast.Compare(
            left=ast.Name() | ast.Attribute(value=ast.Name()) | ast.Constant()
        ):
            return len(node.comparators) == 1
    return False


def _of_none(node: ast.expr) -> str | None:
    """`x.node is None`, as far as it is known."""
    match node:
        case ast.Compare(
            left=ast.Attribute(attr=name),
            ops=[ast.Is() | ast.IsNot() as how],
            comparators=[ast.Constant(value=None)],
        ) if name in _NONE:
            return str(isinstance(how, ast.Is))
    return None


def _is_call(node: ast.expr, names: frozenset[str]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in names
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
