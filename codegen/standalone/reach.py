"""Reachability: the definitions and class members of the runtime that a model uses.

Names are followed from the model's source through that of the runtime. A member of a
class is taken where an attribute of its name is asked for anywhere; of `Tensor`, where
tensors are: not in operators' values and their helpers, which compute on arrays.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from burnish.codegen.errors import ConversionError
from burnish.codegen.standalone.names import (
    CHOICES,
    CORE,
    NAMED,
    Outside,
    Page,
    Symbol,
    imports,
    once_a_part,
    page,
    texts,
)
from burnish.codegen.standalone.uses import Use, uses

_OF_ARRAYS = frozenset(("operator", "step"))
"""Decorators of functions that are given plain arrays."""

_TENSOR, _METHODS = f"{CORE}.tensor", "burnish.methods."

_ALLOWED = frozenset((*sys.stdlib_module_names, "numpy", "ml_dtypes"))
"""Packages that reached code may import; dtypes of ml_dtypes are refused before."""

_UNUSED = frozenset(
    (
        *("__repr__", "__str__", "__format__", "__reduce__", "__getattr__"),
        *("__setitem__", "__delattr__", "__init_subclass__", "__class_getitem__"),
    )
)
"""Special methods that no computation needs."""

_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("__add__", "__radd__"),
    ast.Sub: ("__sub__", "__rsub__"),
    ast.Mult: ("__mul__", "__rmul__"),
    ast.Div: ("__truediv__", "__rtruediv__"),
    ast.FloorDiv: ("__floordiv__", "__rfloordiv__"),
    ast.Mod: ("__mod__", "__rmod__"),
    ast.Pow: ("__pow__", "__rpow__"),
    ast.MatMult: ("__matmul__", "__rmatmul__"),
    ast.BitAnd: ("__and__", "__rand__"),
    ast.BitOr: ("__or__", "__ror__"),
    ast.BitXor: ("__xor__", "__rxor__"),
    ast.LShift: ("__lshift__", "__rlshift__"),
    ast.RShift: ("__rshift__", "__rrshift__"),
    ast.USub: ("__neg__",),
    ast.Invert: ("__invert__",),
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__",),
    ast.Lt: ("__lt__", "__gt__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"),
}
_FUNCTIONS = {
    name: f"__{name}__"
    for name in ("abs", "round", "len", "iter", "int", "float", "bool")
} | {"range": "__index__"}
"""Python's built-in functions, and the special methods that they call."""

_ITEMS = ("__getitem__", "__iter__", "__len__")
_ALWAYS = frozenset(("__bool__", "__int__", "__float__", "__index__", "__hash__"))


@dataclass
class Reached:
    """Definitions that a model needs, each with the members of it that are needed.

    spaces: attributes read from `ops`, `nn` and the like.
    """

    symbols: dict[Symbol, set[str]] = field(default_factory=dict)
    outside: set[Outside] = field(default_factory=set)
    spaces: dict[str, dict[str, Symbol]] = field(default_factory=dict)


_GENERATOR = Symbol(f"{CORE}.rng", "generator")

MODEL = "model"
"""The name of the model's own page."""

SPACES = ("burnish.ops", "burnish.nn", "burnish.generation", "burnish.selftest")
INIT = "burnish.nn.init"
"""Modules that keep their names: models write `ops.relu` and `nn.init.zeros`."""

_PUBLIC = ("forward", "from_bytes", "from_embedded", "from_file", "load_state_dict")
_OF_RESULTS = ("dtype", "item", "numpy", "shape", "tolist")
"""The attributes of models and of result tensors that users may read."""


def reach(model: Page) -> Reached:
    """Definitions of the runtime that a model reaches; of layers by name, those named.

    It sets NAMED for the page to be written.
    """
    found = _reach(model)
    others = [symbol for symbol in found.symbols if symbol.module != CHOICES]
    if len(others) == len(found.symbols):
        return found
    parts = [model.tree, *(part for s in others for part in definition(s))]
    NAMED.set(frozenset().union(*map(texts, parts)))
    return _reach(model)


def _reach(model: Page) -> Reached:
    search = _Search()
    for stmt in model.tree.body:
        search.look(model, stmt, of_arrays=False)
    search.finish()
    if _GENERATOR in search.reached.symbols:
        search.todo.append((_GENERATOR._replace(name="seed"), False))
        search.finish()
    return search.reached


def definition(symbol: Symbol) -> list[ast.stmt]:
    """The statement that defines a symbol, and those that add to it."""
    found = page(symbol.module)
    return [found.made[symbol.name], *found.more.get(symbol.name, ())]


def members(node: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    """The named members of a class."""
    for stmt in node.body:
        if isinstance(stmt, ast.FunctionDef):
            yield stmt.name, stmt
        elif isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
            yield stmt.targets[0].id, stmt


class _Search:
    def __init__(self) -> None:
        self.reached = Reached()
        self.asked = {*_PUBLIC, *_OF_RESULTS}  # attributes, of anything
        self.of_core: set[str] = set()
        self.of_tensors = {*_ALWAYS, *_OF_RESULTS}
        self.todo: list[tuple[Symbol, bool]] = []
        self.done: set[tuple[Symbol, bool]] = set()

    def finish(self) -> None:
        while True:
            while self.todo:
                symbol, of_arrays = self.todo.pop()
                if (symbol, of_arrays) not in self.done:
                    self.done.add((symbol, of_arrays))
                    self._define(symbol, of_arrays)
            before = sum(map(len, self.reached.symbols.values()))
            for symbol in list(self.reached.symbols):
                self._take_members(symbol)
            after = sum(map(len, self.reached.symbols.values()))
            if before == after and not self.todo:
                return

    def look(self, found: Page, node: ast.AST, of_arrays: bool) -> None:
        """Record the names and attributes that a statement uses."""
        if package := _needed_package(found, node):
            raise ConversionError(
                f"--standalone: expected what NumPy alone can do, got {found.name}, "
                f"which imports {package}; generate without --standalone"
            )
        for use in uses(found, node):
            self._use(use, of_arrays, found.name == MODEL)
        core = found.name.startswith(CORE)
        tensors = not of_arrays and (not core or found.name == _TENSOR)
        names = _asked_in(found, node)
        self.asked |= names
        if core:
            self.of_core |= names
        if tensors:
            self.of_tensors |= names

    def _use(self, use: Use, of_arrays: bool, of_model: bool) -> None:
        target = use.target
        if isinstance(use.node, ast.stmt):
            return  # an import: what it binds is used elsewhere
        if isinstance(target, Outside):
            self.reached.outside.add(target)
            return
        if use.annotation:
            if target.module != MODEL and is_alias(target):
                self.todo.append((target, of_arrays))
            return
        if not target.name:
            raise ConversionError(
                f"--standalone: expected names that can be followed, got all of "
                f"{target.module}, whose members are chosen by text when the model is "
                f"made; generate without --standalone"
            )
        if target.module == MODEL:
            return
        self.todo.append((target, of_arrays))
        space = use.space
        if space in (*SPACES, INIT) and (use.late or of_model):
            assert isinstance(use.node, ast.Attribute)
            self.reached.spaces.setdefault(space, {})[use.node.attr] = target

    def _define(self, symbol: Symbol, of_arrays: bool) -> None:
        self.reached.symbols.setdefault(symbol, set())
        found = page(symbol.module)
        first, *more = definition(symbol)
        if isinstance(first, ast.ClassDef):
            named = {id(stmt) for _, stmt in members(first)}
            for part in (*first.decorator_list, *first.bases, *first.keywords):
                self.look(found, part, of_arrays)
            for stmt in first.body:
                if id(stmt) not in named:
                    self.look(found, stmt, of_arrays)
            self._take_members(symbol)
        else:
            plain = isinstance(first, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id in _OF_ARRAYS
                for d in first.decorator_list
            )
            self.look(found, first, of_arrays or plain)
        for stmt in more:
            self.look(found, stmt, of_arrays)

    def _take_members(self, symbol: Symbol) -> None:
        node = page(symbol.module).made[symbol.name]
        if not isinstance(node, ast.ClassDef):
            return
        taken = self.reached.symbols[symbol]
        for name, stmt in members(node):
            if name not in taken and self._wants(name, symbol):
                taken.add(name)
                self.look(page(symbol.module), stmt, of_arrays=False)

    def _wants(self, name: str, symbol: Symbol) -> bool:
        if symbol.module.startswith(CORE) and name.startswith("__"):
            return True
        if name in ("__slots__", "__init__", "__doc__"):
            return True
        if name in _UNUSED:
            return False
        if symbol.module == _TENSOR:
            return name in self.of_tensors or name in self.of_core
        if symbol.module.startswith(_METHODS):
            return name in self.of_tensors
        return name.startswith("__") or name in self.asked


@once_a_part
def _needed_package(found: Page, node: ast.AST) -> str:
    """The package other than NumPy that a part imports when it is called, or ""."""
    for stmt in ast.walk(node):
        if not isinstance(stmt, ast.Import | ast.ImportFrom):
            continue
        for _, target in imports(stmt):
            package = target.module.partition(".")[0]
            if not isinstance(target, Symbol) and package not in _ALLOWED:
                return package
    return ""


@once_a_part
def _asked_in(found: Page, node: ast.AST) -> frozenset[str]:
    """The attributes that a part reads from anything but Python's and NumPy's own."""
    return frozenset(
        name
        for each in _without_notes(node)
        if not (isinstance(each, ast.Attribute) and _is_library(found, each.value))
        for name in _asked(each)
    )


def _without_notes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and its parts, without annotations."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        for name, value in ast.iter_fields(each):
            if name in ("annotation", "returns"):
                continue
            parts = value if isinstance(value, list) else [value]
            todo.extend(part for part in parts if isinstance(part, ast.AST))


def _asked(node: ast.AST) -> tuple[str, ...]:
    """The attributes that a node reads from its operands."""
    match node:
        case ast.Attribute(attr=name):
            return (name,)
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.AugAssign(op=op):
            return _OPERATORS.get(type(op), ())
        case ast.Compare(ops=ops):
            return tuple(n for op in ops for n in _OPERATORS.get(type(op), ()))
        case ast.Subscript(value=value) if not _is_shape(value):
            return _ITEMS
        case ast.For(iter=ast.Name()) | ast.comprehension(iter=ast.Name()):
            return _ITEMS
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
            return (_FUNCTIONS[name],)
        case ast.Call(
            func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]
        ):
            return (str(name),)
    return ()


def _is_library(found: Page, node: ast.expr) -> bool:
    """Whether attributes of this are Python's or NumPy's: `np`, `np.add`, `math`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    return node.id == "np" or isinstance(found.imported.get(node.id), Outside)


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "__dict__")


def is_alias(symbol: Symbol) -> bool:
    """Whether annotations may keep a name: an assigned one, but no type variable."""
    if not (symbol.module and symbol.name):
        return False
    node = page(symbol.module).made.get(symbol.name)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    return not ast.unparse(node.value).startswith(("TypeVar", "ParamSpec"))
