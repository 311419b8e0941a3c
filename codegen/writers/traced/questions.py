"""Find the loop whose condition reads a tensor's value: `while x > 0`, `range(n)`."""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType, FrameType
from typing import NamedTuple, TypeGuard

from burnish.codegen.errors import ExportError

Place = tuple[str, tuple[int, ...]]
"""A file; lines and columns of the beginning and the end."""


class Asking(NamedTuple):
    """A loop that runs in a frame.

    stays: what the tensor has to say for another round; None where it is their number.
    """

    frame: FrameType
    node: ast.While | ast.For
    stays: bool | None

    def is_inside(self, line: int) -> bool:
        """Whether a line of the frame's function is one of a round."""
        return self.node.body[0].lineno <= line <= (self.node.end_lineno or line)

    def is_in(self, other: Asking | None) -> bool:
        """Whether two reads come from the same execution of the same loop."""
        return (
            other is not None and other.frame is self.frame and other.node is self.node
        )


def truth_asked(frame: FrameType, line: str) -> Asking | None:
    """The `while` loop whose condition reads a tensor; None for an `if`.

    That is a `while`, or a `for` over `range` that begins with `if ...: break`.
    """
    _, place = place_of(frame)
    for node in _loops(frame.f_code.co_filename):
        asks = node if isinstance(node, ast.While) else _breaking(node)
        if asks is None or not (
            place == _span(asks) or _within(place, _span(asks.test))
        ):
            continue  # the instruction is the statement's, or the test's
        test, stays = asks.test, asks is node
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, stays = test.operand, not stays
        _check(node, line)
        if any(_is_several(each) for each in ast.walk(test)):
            raise ExportError(
                f"export: {line}: expected a loop whose condition reads one "
                f"tensor, got several; join them with & and |"
            )
        return Asking(frame, node, stays)
    return None


def count_asked(frame: FrameType, line: str) -> Asking | None:
    """The loop `for ... in range(n)` whose trip count is a tensor's value."""
    _, place = place_of(frame)
    for node in _loops(frame.f_code.co_filename):
        if isinstance(node, ast.For) and place in map(_span, _counts(node)):
            _check(node, line)
            return Asking(frame, node, None)
    return None


def may_break(node: ast.While | ast.For) -> bool:
    """Whether a loop over `range` begins with `if ...: break`."""
    return isinstance(node, ast.For) and _breaking(node) is not None


def _counts(node: ast.For) -> list[ast.expr]:
    """The tensor of `range(n)`, `range(n.item())`, `range(int(n.item()))`."""
    match node.iter:
        case ast.Call(func=ast.Name(id="range"), args=[inner]):
            match inner:
                case ast.Call(func=ast.Name(id="int"), args=numbers):
                    return [node.iter, inner, *numbers]
            return [node.iter, inner]
    return []


def _breaking(node: ast.For) -> ast.If | None:
    """The `if ...: break` that a loop over `range` begins with."""
    match node.body[0]:
        case ast.If(body=[ast.Break(), *_], orelse=[]) as first if _counts(node):
            return first
    return None


def _check(node: ast.While | ast.For, line: str) -> None:
    if node.orelse:
        raise ExportError(f"export: {line}: expected a loop without `else`")


def check_alike(asking: Asking, asked: set[Place], line: str) -> None:
    """ExportError where what a round does may depend on numbers of Python.

    asked: where the tensors of this run were asked; other tests in the loop that read
    what the loop itself gives names to are Python's own.
    """
    node, file = asking.node, asking.frame.f_code.co_filename
    inside = [each for part in node.body for each in ast.walk(part)]
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    named = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    named |= {name for each in inside if (name := _changed(each))}
    for each in inside:
        if isinstance(each, ast.If | ast.IfExp | ast.While):
            spans = (_span(each), _span(each.test))
            if any(name == file and _overlap(place, spans) for name, place in asked):
                continue
            read = _read(each.test) & named
        elif isinstance(each, ast.Compare) or _is_uneven(each):
            read = _read(each) & _targets(node)
        else:
            continue
        if read:
            raise ExportError(
                f"export: {line}: expected a loop of equal iterations, got one that "
                f"decides by {min(read)} in Python, line {each.lineno}; use a tensor"
            )


@functools.lru_cache(maxsize=256)
def decides(code: CodeType, name: str) -> bool:
    """Whether a function may do something else for another value of a number of Python.

    True where there is no source to tell.
    """
    node = _function(code)
    if node is None:
        return True
    deciding = ast.Compare | ast.BoolOp | ast.Subscript
    for each in ast.walk(node):
        if isinstance(each, ast.If | ast.IfExp | ast.While):
            asked: ast.AST = each.test
        elif isinstance(each, deciding) or _is_uneven(each):
            asked = each
        else:
            continue
        if name in _read(asked):
            return True
    return False


@functools.lru_cache(maxsize=256)
def _function(code: CodeType) -> ast.AST | None:
    """The source of a function, as far as it can be read."""
    kinds = (ast.FunctionDef, ast.Lambda)
    found = [n for n in ast.walk(_tree(code.co_filename)) if isinstance(n, kinds)]
    lines = [(min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))]), n)
             for n in found]  # fmt: skip
    same = [node for line, node in lines if line == code.co_firstlineno]
    return same[0] if len(same) == 1 else None


_UNEVEN = (ast.FloorDiv, ast.Mod, ast.RShift, ast.BitAnd, ast.Pow)
_SHAPES = ("shape", "ndim", "dtype", "device")


def _changed(node: ast.AST) -> str:
    """The name that a statement such as `states.append(x)` or `d[k] = x` changes."""
    part: ast.AST | None = None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        part = function.value if isinstance(function, ast.Attribute) else None
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        part = node.value
    return part.id if isinstance(part, ast.Name) else ""


def _is_uneven(node: ast.AST) -> TypeGuard[ast.BinOp | ast.Call]:
    """Whether an operation may do something else for another number: min, %, &."""
    match node:
        case ast.BinOp(op=op):
            return isinstance(op, _UNEVEN)
        case ast.Call(func=ast.Name(id="min" | "max" | "divmod")):
            return True
    return False


def _targets(node: ast.While | ast.For) -> set[str]:
    return _read(node.target) if isinstance(node, ast.For) else set()


def _read(node: ast.AST) -> set[str]:
    """The names in an expression that it reads more than the shape of."""
    if isinstance(node, ast.Attribute) and node.attr in _SHAPES:
        return set()
    if isinstance(node, ast.Name):
        return {node.id}
    return {name for each in ast.iter_child_nodes(node) for name in _read(each)}


def _overlap(place: tuple[int, ...], spans: tuple[tuple[int, ...], ...]) -> bool:
    statement, test = spans
    return place == statement or _within(place, test)


def _is_several(node: ast.AST) -> bool:
    chained = isinstance(node, ast.Compare) and len(node.ops) > 1
    return chained or isinstance(node, ast.BoolOp | ast.IfExp | ast.NamedExpr)


def _within(place: tuple[int, ...], span: tuple[int, ...]) -> bool:
    return span[:2] <= place[:2] and place[2:] <= span[2:]


def _span(node: ast.expr | ast.stmt) -> tuple[int, ...]:
    return (
        node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
    )  # fmt: skip


def place_of(frame: FrameType) -> Place:
    """The source position of the running instruction."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = (each or 0 for each in positions)
    return frame.f_code.co_filename, (line, column, end_line, end_column)


@functools.lru_cache(maxsize=32)
def _loops(filename: str) -> list[ast.While | ast.For]:
    """The loops of a file, inner ones last; none where there is no source."""
    every = ast.walk(_tree(filename))
    return [node for node in every if isinstance(node, ast.While | ast.For)]


def _tree(filename: str) -> ast.Module:
    """The source of a file; nothing where there is none that can be read."""
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return ast.Module([], [])
