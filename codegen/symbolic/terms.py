"""Products of names with a rational factor: `3*dim`, `kv_heads*head_dim`, `dim//2`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import gcd

from burnish.codegen.program import BinOp, Expression, Literal


@dataclass(frozen=True, slots=True)
class Term:
    """`times * name * name // over`; no names: a number. One of times, over is 1."""

    names: tuple[str, ...]
    times: int = 1
    over: int = 1

    def __mul__(self, other: Term) -> Term | None:
        """The product; None where its factor has a numerator and a denominator."""
        if 1 not in (self.over, other.over):
            return None
        names = (*self.names, *other.names)
        return _whole(names, self.times * other.times, self.over * other.over)

    def divided(self, other: Term) -> Term | None:
        """The quotient, where the other is a factor."""
        if other.over != 1:
            return None
        left = Counter(self.names)
        left.subtract(other.names)
        if min(left.values(), default=0) < 0:
            return None
        return _whole(tuple(left.elements()), self.times, self.over * other.times)

    def __str__(self) -> str:
        factors = [str(self.times)] if self.times != 1 or not self.names else []
        factors += self.names
        if len(factors) > 1:  # a rounded quotient is a factor, no product is divided
            factors = [f"({each})" if "//" in each else each for each in factors]
        made = "*".join(factors)
        return made if self.over == 1 else f"{made}//{self.over}"

    def spelled(self, name: Callable[[str], Expression]) -> Expression:
        """The term over names as `name` writes them."""
        factors = [name(each) for each in self.names]
        if self.times != 1 or not factors:
            factors.insert(0, Literal(self.times))
        made = reduce(lambda one, other: BinOp("*", one, other), factors)
        return made if self.over == 1 else BinOp("//", made, Literal(self.over))


def _whole(names: tuple[str, ...], times: int, over: int) -> Term | None:
    """The term with its factor in lowest terms, the denominator positive."""
    common = gcd(times, over) if over > 0 else -gcd(times, over)
    times, over = times // common, over // common
    return Term(names, times, over) if 1 in (times, over) else None
