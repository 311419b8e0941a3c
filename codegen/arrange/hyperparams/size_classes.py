"""Union-find of equal sizes, and the products among them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod

from burnish.codegen.arrange.analysis.holes import Hole
from burnish.codegen.program import ClassPlan

Node = Hashable
Dims = list[Node]


@dataclass(frozen=True)
class Product:
    """`whole` is `times` times all the factors; is_cut: it was cut into them."""

    whole: Node
    factors: tuple[Node, ...]
    times: int = 1
    is_cut: bool = False


class Ties:
    """Sizes that are known to be equal, each with its number where that is known.

    products: what else is known of them. rows: how many rows tables have that are read
    by row, and how wide these are; norms: how wide features are that are normalized;
    layers: how many features linear layers take and give. opened: each class with its
    holes, which are nodes. outlines: the shapes that each class takes and gives.
    """

    def __init__(self, parameters: Mapping[str, list[str]]):
        self.parameters = parameters
        self.parent: dict[Node, Node] = {}
        self.number: dict[Node, int] = {}
        self.products: list[Product] = []
        self.rows: list[tuple[Node, Node]] = []
        self.norms: list[Node] = []
        self.layers: list[tuple[Node, Node]] = []
        self.opened: dict[str, tuple[ClassPlan, list[Hole]]] = {}
        self.outlines: dict[str, tuple[list[Dims | None], list[Dims | None]]] = {}
        self.fresh = 0

    def find(self, node: Node) -> Node:
        """The union-find root of a size."""
        root = node
        while (up := self.parent.get(root, root)) != root:
            root = up
        while (up := self.parent.get(node, node)) != root:
            self.parent[node], node = root, up
        return root

    def node(self, node: Node, number: object) -> Node:
        if isinstance(number, int):
            self.number[self.find(node)] = number
        return node

    def new(self, number: object = None) -> Node:
        self.fresh += 1
        return self.node(("new", self.fresh), number)

    def same(self, one: Node, other: Node) -> None:
        """Say that two sizes are one; numbers that differ are not."""
        a, b = self.find(one), self.find(other)
        if a == b:
            return
        known, also = self.number.get(a), self.number.get(b)
        if known is not None and also is not None and known != also:
            return
        self.parent[b] = a
        if known is None and also is not None:
            self.number[a] = also

    def alike(self, one: Dims | None, other: Dims | None) -> None:
        """Unify two shapes from the right; axes of size 1 broadcast."""
        if one is None or other is None:
            return
        for a, b in zip(reversed(one), reversed(other), strict=False):
            if 1 not in (self.of(a), self.of(b)):
                self.same(a, b)

    def agree(self, one: Node, other: Node) -> bool:
        """Whether two sizes have one number, or none; those with one are the same."""
        number = self.of(one)
        if number != self.of(other):
            return False
        if number is not None:
            self.same(one, other)
        return True

    def kept(self, one: Dims | None, other: Dims | None) -> None:
        """Say that axes with equal numbers are the same, as of parts of a whole."""
        if one and other and len(one) == len(other):
            for a, b in zip(one, other, strict=True):
                if self.of(a) is not None:
                    self.same(a, b)

    def of(self, node: Node) -> int | None:
        return self.number.get(self.find(node))

    def product(
        self, whole: Node, *factors: Node, times: int = 1, is_cut: bool = False
    ) -> None:
        """Say that a size is the product of others, where their numbers are."""
        numbers = [self.of(factor) for factor in factors]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers) and self.of(whole) == times * prod(known):
            self.products.append(Product(whole, factors, times, is_cut))
