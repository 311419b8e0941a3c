"""Lay out the definitions of a single file: headings, comments, lines, names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from burnish.codegen.standalone.fold import Edit
from burnish.codegen.standalone.names import Outside, Page, Symbol, once_a_part, page

_WIDTH = 88


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


def laid_out(parts: list[str]) -> str:
    """Parts with two empty lines around definitions and headings, else with one."""
    text, before = "", ""
    for part in map(str.strip, parts):
        apart = any(_is_block(each) for each in (before, part) if each)
        text += ("\n\n\n" if apart else "\n\n") * bool(before) + part
        before = part
    return text


def broken(line: str) -> list[str]:
    """A line that a longer name made too long, broken at its last brackets.

    A line that begins with a string is broken behind a space of the string.
    """
    if len(line) <= _WIDTH:
        return [line]
    pad = " " * (len(line) - len(line.lstrip()))
    if text := re.fullmatch(r'( *f?")([^"]*"[,)]*)', line):
        end = _last_space(text[2], _WIDTH - len(text[1]) - 1)
        if not end:
            return [line]
        return [f'{text[1]}{text[2][:end]}"', f"{text[1]}{text[2][end:]}"]
    for opened, closed in reversed(_brackets(line)):
        inner = line[opened + 1 : closed]
        in_string = line[:opened].count('"') % 2
        if inner and not in_string and len(f"{pad}    {inner}") <= _WIDTH:
            return [line[: opened + 1], f"{pad}    {inner}", f"{pad}{line[closed:]}"]
    return [line]


def _last_space(text: str, most: int) -> int:
    """The place behind the last space before `most` that is in no braces."""
    ends, depth = [0], 0
    for place, character in enumerate(text[:most], 1):
        depth += (character == "{") - (character == "}")
        if character == " " and not depth:
            ends.append(place)
    return ends[-1]


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


def candidates(symbol: Symbol) -> Iterator[str]:
    yield symbol.name
    stem = symbol.module.rpartition(".")[2].strip("_")
    private = "_" if symbol.name.startswith("_") else ""
    base = f"{private}{stem}_{symbol.name.strip('_')}"
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def heading(module: str) -> str:
    """A heading: the summary of a module of the runtime."""
    doc = ast.get_docstring(page(module).tree) or module
    first = doc.splitlines()[0].rstrip(".")
    return f"# --- {first} ---" if len(first) <= 78 else f"# {first}"


def is_text(stmt: ast.stmt) -> bool:
    return (
        isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Constant)
        and isinstance(stmt.value.value, str)
    )


@once_a_part
def notes_in(_page: Page, node: ast.AST) -> list[ast.expr]:
    """The annotations in a part of a page."""
    notes = (
        getattr(each, name, None)
        for each in ast.walk(node)
        for name in ("annotation", "returns")
    )
    return [note for note in notes if isinstance(note, ast.expr)]


def outermost(edits: Iterable[Edit]) -> list[Edit]:
    """Edits without those nested in another."""
    kept: list[Edit] = []
    for edit in sorted(set(edits), key=lambda e: (e.start, -e.stop)):
        if not kept or edit.start >= kept[-1].stop or kept[-1].start == kept[-1].stop:
            kept.append(edit)
    return kept


def with_comments(text: str, start: int) -> int:
    """The start of the comment lines right above a statement."""
    while start:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].startswith("#") or text[line:start].startswith("# ---"):
            break
        start = line
    return start


def with_docstring(found: Page, stmt: ast.stmt, stop: int) -> int:
    """The end of the docstring behind an assignment."""
    body = found.tree.body
    number = body.index(stmt) + 1
    assigned = isinstance(stmt, ast.Assign | ast.AnnAssign) and number < len(body)
    has_doc = assigned and is_text(body[number])
    return found.places.line_after(body[number]) if has_doc else stop
