"""Symbolic sizes: sums of products of names, such as 2*batch + 1.

Equal sizes are equal objects, whatever way they were computed. What a file or a pass
writes as a dimension is text, "2*batch"; other expressions, "floor(batch/2)", are one
name.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from burnish.codegen.program import BinOp, Call, Conditional, Expression, Literal
from burnish.codegen.symbolic.terms import Term

Names = tuple[str, ...]

MOST_DIMS = 64
"""How many dimensions an array of NumPy's can have."""

_MOST = 64
"""Terms of a size, and factors of a term: what squares itself would find no end."""

_HIDDEN = "\u0294"
"""A letter for the "?" of a name that no reader will see."""


@dataclass(frozen=True)
class Size:
    """A sum of terms: whole multiples of products of sorted names."""

    terms: frozenset[Term]

    @classmethod
    def of(cls, counts: dict[Names, int]) -> Size:
        """A size from counts, zeros dropped; one name where the terms are too many."""
        terms = frozenset(Term(names, n) for names, n in counts.items() if n)
        large = any(len(t.names) > _MOST or abs(t.times) >> 63 for t in terms)
        return cls._hidden(terms) if large or len(terms) > _MOST else cls(terms)

    @classmethod
    def _hidden(cls, terms: frozenset[Term]) -> Size:
        """An internal symbol that records whether it is nonnegative."""
        digest = hashlib.sha256(repr(sorted(map(str, terms))).encode()).hexdigest()
        parts = {Term((f"?{digest}",))}
        if any(term.times < 0 for term in terms):
            parts.add(Term((f"?{digest}_",), -1))
        return cls(frozenset(parts))

    @classmethod
    def number(cls, value: int) -> Size:
        """A size that is known."""
        return cls.of({(): value})

    @classmethod
    def named(cls, name: str) -> Size:
        """A size that has a name."""
        return cls.of({(name,): 1})

    def __add__(self, other: Size) -> Size:
        counts = Counter(self._counts)
        for term in other.terms:
            counts[term.names] += term.times
        return Size.of(counts)

    def __mul__(self, other: Size) -> Size:
        counts: Counter[Names] = Counter()
        for one in self.terms:
            for two in other.terms:
                names = tuple(sorted((*one.names, *two.names)))
                counts[names] += one.times * two.times
        return Size.of(counts)

    def __sub__(self, other: Size) -> Size:
        return self + other * Size.number(-1)

    def divided(self, other: Size) -> Size | None:
        """The quotient where one product of names divides all of it, else None."""
        if len(other.terms) != 1:
            return None
        (by,) = other.terms
        parts = [term.divided(by) for term in self.terms]
        if any(part is None or part.over != 1 for part in parts):
            return None
        return Size(frozenset(part for part in parts if part is not None))

    def __floordiv__(self, other: Size) -> Size:
        exact = self.divided(other)
        if exact is not None:
            return exact
        return Size.named(f"({self})//({other})")

    def renamed(self, names: Mapping[str, str]) -> Size:
        """The same with other names."""
        counts: Counter[Names] = Counter()
        for term in self.terms:
            renamed = tuple(sorted(names.get(name, name) for name in term.names))
            counts[renamed] += term.times
        return Size.of(counts)

    @property
    def _counts(self) -> dict[Names, int]:
        return {term.names: term.times for term in self.terms}

    @property
    def constant(self) -> int:
        """The part without a name."""
        return self._counts.get((), 0)

    @property
    def value(self) -> int | None:
        """The number, where the size is one."""
        return self.constant if self._counts.keys() <= {()} else None

    @property
    def name(self) -> str | None:
        """The name, where the size is one name."""
        if len(self.terms) != 1:
            return None
        (term,) = self.terms
        return term.names[0] if term.times == 1 and len(term.names) == 1 else None

    @property
    def nonnegative(self) -> bool:
        """Whether the size's form proves that it is nonnegative."""
        return all(term.times > 0 for term in self.terms)

    @property
    def dim(self) -> int | str:
        """As a dimension is written: a number, or text."""
        number = self.value
        return str(self) if number is None else number

    def __str__(self) -> str:
        ordered = sorted(
            self.terms, key=lambda term: (term.times < 0, -len(term.names), term.names)
        )
        return " + ".join(map(str, ordered)).replace("+ -", "- ") or "0"


ONE = Size.number(1)


def product(sizes: list[Size]) -> Size:
    """All of them multiplied."""
    return math.prod(sizes, start=ONE)


@functools.lru_cache(maxsize=4096)
def parse(dim: int | str) -> Size:
    """A dimension as a Size; text that is no sum of products is one name."""
    if isinstance(dim, int):
        return Size.number(dim)
    try:
        size: Size = _computed(_tree(dim), Size.number, Size.named)
    except (ValueError, RecursionError):
        return Size.named(dim)
    return size


def names_in(size: Size) -> set[str]:
    """All names, those inside of quotients too."""
    tree = _tree(str(size))
    found = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.replace(_HIDDEN, "?") for name in found}


def evaluated(size: Size, sizes: Mapping[str, Any]) -> Any:
    """The number at given sizes, an array at arrays of them; None where it is unknown.

    Quotients are rounded down.
    """
    try:
        return _computed(_tree(str(size)), int, sizes.__getitem__)
    except (ArithmeticError, LookupError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=4096)
def _tree(text: str) -> ast.expr:
    """Text as Python parses it; a constant that is no number where it does not."""
    try:
        return ast.parse(text.replace("?", _HIDDEN), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Constant(None)


def _computed(
    tree: ast.expr, number: Callable[[int], Any], named: Callable[[str], Any]
) -> Any:
    """What sums, products and quotients give; number, named: the leaves' values."""
    match tree:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return number(value)
        case ast.Name(id=name):
            return named(name.replace(_HIDDEN, "?"))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return number(0) - _computed(operand, number, named)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            one, other = (_computed(side, number, named) for side in (left, right))
            return _ARITHMETIC[type(op)](one, other)
    raise ValueError(f"no sum of products: {ast.dump(tree)}")


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def unequal(one: Size, other: Size) -> bool:
    """Whether two sizes must differ: one is the other plus more than nothing."""
    for difference in (one - other, other - one):
        if difference.nonnegative and difference.constant > 0:
            return True
    return False


# --- sizes that Python expressions compute ---

Lookup = Callable[[Expression], "Size | None"]


def size_of(expression: Expression, lookup: Lookup) -> Size | None:
    """The size that an expression on the host computes, as far as that is known.

    lookup: the size of a leaf of the expression.
    """
    match expression:
        case Literal(value=int() as value) if not isinstance(value, bool):
            return Size.number(value)
        case BinOp(operator="+" | "-" | "*" | "//" as operator):
            a, b = size_of(expression.left, lookup), size_of(expression.right, lookup)
            return None if a is None or b is None else _BINARY[operator](a, b)
        case Call(function="int", args=(BinOp(operator="/", left=left, right=right),)):
            a, b = size_of(left, lookup), size_of(right, lookup)
            return None if a is None or b is None else _towards_zero(a, b)
        case Call(function="max" | "min" as function, args=(left, right)):
            a, b = size_of(left, lookup), size_of(right, lookup)
            return None if a is None or b is None else _extreme(function, a, b)
        case Conditional(then=then, condition=condition, otherwise=otherwise):
            holds = truth_of(condition, lookup)
            taken = then if holds else otherwise
            return None if holds is None else size_of(taken, lookup)
    return lookup(expression)


def truth_of(expression: Expression, lookup: Lookup) -> bool | None:
    """Whether a comparison of sizes holds whatever they are; None if it depends."""
    match expression:
        case BinOp(operator="==" | "<" | "<=" | ">" | ">=" as operator):
            a, b = size_of(expression.left, lookup), size_of(expression.right, lookup)
            return None if a is None or b is None else _compared(operator, a, b)
    return None


def _compared(operator: str, a: Size, b: Size) -> bool | None:
    if operator == "==":
        return True if a == b else False if unequal(a, b) else None
    if operator in (">", ">="):
        a, b = b, a
    strict = operator in ("<", ">")
    room = b - a - ONE if strict else b - a
    if room.nonnegative:
        return True
    against = a - b if strict else a - b - ONE
    return False if against.nonnegative else None


def _towards_zero(a: Size, b: Size) -> Size | None:
    exact = a.divided(b)
    return exact or (a // b if a.nonnegative and b.nonnegative else None)


def _extreme(function: str, a: Size, b: Size) -> Size | None:
    larger = a if (a - b).nonnegative else b if (b - a).nonnegative else None
    if larger is None or function == "max":
        return larger
    return b if larger is a else a


_BINARY: dict[str, Callable[[Size, Size], Size | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": _towards_zero,
}
