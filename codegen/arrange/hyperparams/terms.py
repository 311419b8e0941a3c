"""Sizes as symbolic products: `3 * dim`, `kv_heads * head_dim`, `head_dim // 2`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from burnish.codegen.program import BinOp, Expression, Literal

HEAD_DIM = "head_dim"
"""`dim // heads`, where no argument says it."""

HALF = "half"
"""Half of that: where rotary positions cut a head."""

ORDER = (
    *("dim", "depth", "heads", "kv_heads", HEAD_DIM, HALF, "hidden", "width", "vocab"),
    *("positions", "classes", "outputs"),
)
"""Names of hyperparameters, in the order of a constructor's arguments."""

_CUT = ("heads", HEAD_DIM)


def kind(name: str) -> str:
    """An argument's role without its tower: "dim" of "vision_dim"."""
    return name if name in ORDER else name.rpartition("_")[2]


@dataclass(frozen=True)
class Term:
    """`times * name * name // over`"""

    names: tuple[str, ...]
    times: int = 1
    over: int = 1

    def __mul__(self, other: Term) -> Term | None:
        if 1 not in (self.over, other.over):
            return None
        times, over = self.times * other.times, self.over * other.over
        names = (*self.names, *other.names)
        if times % over == 0:
            times, over = times // over, 1
        return Term(names, times, over) if 1 in (times, over) else None

    def divided(self, other: Term) -> Term | None:
        """The quotient, where the other is a factor."""
        if other.over != 1:
            return None
        left = Counter(self.names)
        left.subtract(other.names)
        times, over = self.times, self.over * other.times
        if times % over == 0:
            times, over = times // over, 1
        if 1 not in (times, over):
            return None
        if min(left.values(), default=0) < 0:
            return None
        return Term(tuple(left.elements()), times, over)

    def cut(self) -> Term:
        """With `heads * head_dim` for `dim`."""
        names = [n for name in self.names for n in (_CUT if name == "dim" else (name,))]
        return replace(self, names=tuple(names))

    def whole(self) -> Term:
        """With `dim` for `heads * head_dim`."""
        names = list(self.names)
        while set(_CUT) <= set(names):
            for name in _CUT:
                names.remove(name)
            names.insert(0, "dim")
        return replace(self, names=tuple(names))

    def __str__(self) -> str:
        made = "*".join([str(self.times)] * (self.times != 1) + list(self.names))
        return made if self.over == 1 else f"{made}//{self.over}"

    def spelled(self, name: Callable[[str], Expression]) -> Expression:
        """The term over names as `name` writes them."""
        factors = [name(each) for each in self.names]
        if self.times != 1 or not factors:
            factors.insert(0, Literal(self.times))
        made = reduce(lambda one, other: BinOp("*", one, other), factors)
        return made if self.over == 1 else BinOp("//", made, Literal(self.over))
