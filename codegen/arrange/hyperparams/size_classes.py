"""Union-find of equal sizes, and the products among them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from burnish.codegen.arrange.analysis.holes import Hole
from burnish.codegen.program import ClassPlan
from burnish.codegen.symbolic import transfer

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

    def new(self, number: object = None, /) -> Node:
        self.fresh += 1
        return self.node(("new", self.fresh), number)

    def same(self, one: Node, other: Node, /) -> Node:
        """Say that two sizes are one; numbers that differ are not."""
        a, b = self.find(one), self.find(other)
        known, also = self.number.get(a), self.number.get(b)
        if a == b or (known is not None and also is not None and known != also):
            return one
        self.parent[b] = a
        if known is None and also is not None:
            self.number[a] = also
        return one

    def spread(self, sizes: Sequence[Node], /) -> Node:
        """Say that sizes other than 1 are one; give it."""
        wide = [size for size in sizes if self.of(size) != 1]
        for size in wide[1:]:
            self.same(wide[0], size)
        return (wide or sizes)[0]

    def total(self, parts: Sequence[Node], /) -> Node:
        """The sum; a multiple where all parts have one number, and so are one."""
        for part in parts[1:]:
            self.agree(parts[0], part)
        numbers = [self.of(part) for part in parts]
        known = [number for number in numbers if number is not None]
        whole = self.new(sum(known) if len(known) == len(parts) else None)
        if len(set(numbers)) == 1:
            self.product(whole, parts[0], times=len(parts))
        return whole

    def times(self, size: Node, count: int, /) -> Node:
        """The multiple; once a size is the size itself."""
        if count == 1:
            return size
        number = self.of(size)
        whole = self.new(None if number is None else count * number)
        self.product(whole, size, times=count)
        return whole

    def alike(self, one: Dims | None, other: Dims | None) -> None:
        """Unify two shapes from the right; axes of size 1 broadcast."""
        if one is not None and other is not None:
            transfer.broadcast([one, other], self.spread)

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
