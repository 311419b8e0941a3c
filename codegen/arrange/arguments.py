"""Sizes that tie a whole model together become arguments, from the model down.

dim, depth, heads, hidden, vocab, classes: what people call them, with the file's values
as the model's defaults. Sizes that are products of others follow them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from burnish.codegen.arrange.dims import read
from burnish.codegen.arrange.slots import Slot, slots_of
from burnish.codegen.arrange.terms import HEAD_DIM, Term
from burnish.codegen.arrange.ties import Node, Product
from burnish.codegen.arrange.written import Arguments, write
from burnish.codegen.errors import Explain
from burnish.codegen.program import Call, ClassPlan, Expression, walk

_FEATURES = frozenset(
    ("in_features", "out_features", "normalized_shape", "embedding_dim")
)
_CHANNELS = frozenset(("in_channels", "out_channels"))
_WIDTH = frozenset(("normalized_shape", "embedding_dim"))
_CLASSES = re.compile("logit|class|prob|score")
_WORDS = re.compile("word|tok|wte|^embed")
_PLACES = re.compile("pos|wpe")
_HEAD = re.compile("(.*_)?(head|fc|classifier|logits)$")
_UNTOLD = re.compile(r"(out|output|result|y|linear|addmm|matmul|gemm|add)?s?[\d_.]*$")
_MANY = 4
"""So many times more words than types of words there are."""
_LEAST = 4
"""A size is the width of a model where it stands in so many places."""


@dataclass(frozen=True)
class _Use:
    plan: ClassPlan
    place: int
    slot: Slot


def with_arguments(
    classes: list[ClassPlan],
    outputs: list[str],
    explain: Explain,
    by_number: bool = False,
) -> None:
    """Give the classes arguments for the sizes that tie them together, in place.

    outputs: what the file calls the model's results. by_number: features of one number
    are the same size, where no data flow tells which are.
    """
    found = _Finder(classes, outputs, by_number)
    arguments = found.run()
    if not arguments.values:
        return
    write(classes, arguments)
    counts = found.counts()
    for name, value in arguments.values.items():
        where = f", in {counts[name]} places" if counts.get(name) else ""
        explain(f"argument {name}={value}{where}")


class _Finder:
    def __init__(self, classes: list[ClassPlan], outputs: list[str], by_number: bool):
        self.classes = classes
        self.tells_apart = any(_CLASSES.search(name.lower()) for name in outputs)
        self.untold = any(_UNTOLD.match(name.lower()) for name in outputs)
        self.ties = read(classes)
        self.values: dict[str, int] = {}
        self.is_deep = False
        self.terms: dict[Node, Term] = {}
        self.uses: dict[Node, list[_Use]] = defaultdict(list)
        self.beside: dict[tuple[str, int], list[Node]] = defaultdict(list)
        if by_number:
            self._tie()
        self._use()

    def _tie(self) -> None:
        """Let features of one number be one size."""
        first: dict[int, Node] = {}
        for plan in self.classes:
            for place, (slot, size) in enumerate(slots_of(plan, self.ties.parameters)):
                if slot.parameter in _FEATURES:
                    node = ("slot", plan.name, place)
                    self.ties.same(first.setdefault(size, node), node)

    def _use(self) -> None:
        for plan in self.classes:
            for place, (slot, _) in enumerate(slots_of(plan, self.ties.parameters)):
                root = self.ties.find(("slot", plan.name, place))
                self.uses[root].append(_Use(plan, place, slot))
                self.beside[plan.name, slot.call].append(root)

    def run(self) -> Arguments:
        self._width()
        self._vocabulary()
        self._results()
        self._positions()
        if self.is_deep:
            self._depths()
        self._follow()
        terms = {self.ties.find(root): term for root, term in self.terms.items()}
        return Arguments(self.values, terms, self.ties)

    def counts(self) -> dict[str, int]:
        """In how many places each argument stands."""
        counts: dict[str, int] = defaultdict(int)
        for root, uses in self.uses.items():
            term = self.terms.get(self.ties.find(root))
            for name in term.names if term else ():
                counts[name] += len(uses)
        return counts

    # --- which sizes have a name ---

    def _call(self, root: Node, name: str) -> None:
        self.terms[self.ties.find(root)] = Term((name,))
        number = self.ties.of(root)
        assert number is not None
        self.values[name] = number

    def _roots(self) -> Iterator[tuple[Node, list[_Use], int]]:
        for root, uses in self.uses.items():
            number = self.ties.of(root)
            if self.ties.find(root) == root and root not in self.terms and number:
                yield root, uses, number

    def _width(self) -> None:
        """The size of the features that norms and embeddings have, and what follows."""
        norms = set(map(self.ties.find, self.ties.norms))
        counts: dict[int, int] = defaultdict(int)
        roots: dict[int, list[Node]] = defaultdict(list)
        for root, uses, size in self._roots():
            kinds = [use.slot.parameter for use in uses]
            if root in norms or not _WIDTH.isdisjoint(kinds):
                counts[size] += sum(
                    kind in _FEATURES or kind == "size" for kind in kinds
                )
                roots[size].append(root)
        sizes = sorted(counts, key=lambda size: -counts[size])
        if not sizes or counts[sizes[0]] < _LEAST:
            return
        if len(sizes) > 1 and 2 * counts[sizes[1]] >= counts[sizes[0]]:
            sizes = self._behind_words(sizes, roots)
            if not sizes:
                return  # stages, each of a width of its own
        number = sizes[0]
        dim = roots[number][0]
        for root in roots[number][1:]:
            self._join(dim, root)
        apart = self._of_fewer_heads()
        for root, uses, size in list(self._roots()):
            other = size == number and root != dim and root not in apart
            if other and self._may_be(uses, dim):
                self._join(dim, root)
        self.is_deep = True
        taken, _ = self.ties.outlines[self.classes[-1].name]
        if dim not in {self.ties.find(size) for dims in taken for size in dims or ()}:
            self._call(dim, "dim")
            self._heads(dim, number)
        self._hidden(number)
        self._narrow(number)

    def _behind_words(
        self, sizes: list[int], roots: dict[int, list[Node]]
    ) -> list[int]:
        """The width that a layer brings words to; [] where none does that."""
        pairs = {
            (self.ties.find(taken), self.ties.find(given))
            for taken, given in self.ties.layers
        }
        for narrow, wide in (sizes, sizes[::-1]) if len(sizes) == 2 else ():
            if any(
                (one, other) in pairs and self._is_embedded(one)
                for one in roots[narrow]
                for other in roots[wide]
            ):
                return [wide]
        return []

    def _is_embedded(self, root: Node) -> bool:
        return any(use.slot.parameter == "embedding_dim" for use in self.uses[root])

    def _join(self, one: Node, other: Node) -> None:
        """Two sizes are one from now on."""
        uses = self.uses.pop(other, [])
        self.ties.same(one, other)
        self.uses[one] += uses

    def _may_be(self, uses: list[_Use], dim: Node) -> bool:
        """Whether a size with the width's number is the width: not beside it."""
        calls = {(use.plan.name, use.slot.call) for use in uses if use.slot.call}
        return not any(
            self.ties.find(root) == dim for call in calls for root in self.beside[call]
        ) and all(
            use.slot.parameter in _FEATURES | _CHANNELS
            or (use.slot.parameter == "reshape" and not use.slot.attribute)
            or (use.slot.parameter == "size" and use.slot.place > 0)
            for use in uses
        )

    def _hidden(self, dim: int) -> None:
        """What a layer widens to and the next one takes."""
        takes = {self.ties.find(taken) for taken, _ in self.ties.layers}
        gives = {self.ties.find(given) for _, given in self.ties.layers}
        found: dict[int, list[Node]] = defaultdict(list)
        for root, uses, size in self._roots():
            kinds = {use.slot.parameter for use in uses}
            stored = "size" in kinds
            taken = "in_features" in kinds or (stored and root in takes)
            given = "out_features" in kinds or (stored and root in gives)
            if taken and given and size != dim:
                found[size].append(root)
        if len(found) == 1:
            for root in next(iter(found.values())):
                self._call(root, "hidden")

    def _narrow(self, dim: int) -> None:
        """How wide words are, where a layer widens them to the model's width."""
        found = [
            root
            for root, _, size in self._roots()
            if size != dim and self._is_embedded(root)
        ]
        if len(found) == 1:
            self._call(found[0], "width")

    # --- heads ---

    def _heads(self, dim: Node, number: int) -> None:
        """How many parts attention cuts the width into; those of keys may be fewer."""
        self.ties.products = [self._apart(p, number) for p in self.ties.products]
        cuts = [p for p in self.ties.products if p.is_cut and len(p.factors) == 2]
        for cut in cuts:
            self._widen(cut, dim, number)
        cuts = [cut for cut in cuts if self._is_cut(cut)]
        counts = sorted({self._number(cut.factors[0]) for cut in cuts}, reverse=True)
        sizes = {self._number(cut.factors[1]) for cut in cuts}
        if not cuts:
            self._told_heads()
        if len(sizes) != 1 or len(counts) > 2 or counts[0] < 2:
            return
        heads, head_dim = counts[0], sizes.pop()
        if heads * head_dim != number:
            self.values[HEAD_DIM] = head_dim
        names = dict(zip(counts, ("heads", "kv_heads"), strict=False))
        self.values |= {name: count for count, name in names.items()}
        for cut in cuts:
            count, size = cut.factors
            self.terms[self.ties.find(count)] = Term((names[self._number(count)],))
            self.terms[self.ties.find(size)] = Term((HEAD_DIM,))

    def _of_fewer_heads(self) -> set[Node]:
        """What is cut into fewer heads than something else: keys' and values' widths.

        Where these have the width's number, that is by accident.
        """
        counts = {
            self.ties.find(cut.whole): self._number(cut.factors[0])
            for cut in self.ties.products
            if cut.is_cut and len(cut.factors) == 2 and cut.times == 1
        }
        cuts = {root: n for root, n in counts.items() if self._is_layers(root)}
        most = max(cuts.values(), default=0)
        return {root for root, heads in cuts.items() if heads < most}

    def _is_layers(self, root: Node) -> bool:
        uses = self.uses.get(root, [])
        return any(use.slot.parameter in _FEATURES for use in uses)

    def _told_heads(self) -> None:
        """How many heads the library's own attention is told to have."""
        told = [
            (root, size)
            for root, uses, size in self._roots()
            if {use.slot.parameter for use in uses} == {"num_heads"}
        ]
        if len({size for _, size in told}) == 1:
            for root, _ in told:
                self._call(root, "heads")

    def _apart(self, product: Product, dim: int) -> Product:
        """What is cut into parts as wide as the model is no cut into heads."""
        if not product.is_cut or len(product.factors) != 2:
            return product
        times, part = product.factors
        if self.ties.of(part) != dim or product.times > 1:
            return product
        return Product(product.whole, (part,), self._number(times))

    def _widen(self, cut: Product, dim: Node, number: int) -> None:
        """Let what is cut be the width, or so many times the width."""
        whole = self.ties.find(cut.whole)
        size = self._number(whole)
        if whole in self.terms or size != cut.times * number:
            return
        if whole in self._of_fewer_heads():
            return
        if cut.times > 1:
            self.terms[whole] = Term(("dim",), cut.times)
        elif self._may_be(self.uses.get(whole, []), dim):
            self._join(dim, whole)

    def _is_cut(self, cut: Product) -> bool:
        """Whether features are cut into heads: a layer makes or takes them."""
        whole = self.ties.find(cut.whole)
        if whole in self.terms:
            return self.terms[whole] == Term(("dim",), cut.times)
        uses = self.uses.get(whole, [])
        return any(use.slot.parameter in _FEATURES | {"size"} for use in uses)

    def _number(self, node: Node) -> int:
        number = self.ties.of(node)
        assert number is not None
        return number

    # --- what goes in, what comes out ---

    def _vocabulary(self) -> None:
        """How many ids an embedding knows, where it is none of positions or types."""
        found = [
            (root, size, any(_WORDS.search(use.slot.attribute) for use in uses))
            for root, uses, size in self._roots()
            if any(_is_vocabulary(use.slot) for use in uses)
        ]
        if len(found) > 1:
            found = [each for each in found if each[2]] or found
            most = max(size for _, size, _ in found)
            found = [each for each in found if _MANY * each[1] > most]
        if len({size for _, size, _ in found}) != 1:
            return
        vocab = found[0][1]
        for root, _, _ in found:
            self._call(root, "vocab")
        cut = {self.ties.find(product.whole) for product in self.ties.products}
        for other, uses, size in list(self._roots()):
            if size == vocab and other not in cut and _is_made(uses):
                self._call(other, "vocab")

    def _results(self) -> None:
        """How many classes the last layer tells apart, or how many numbers it gives."""
        _, results = self.ties.outlines[self.classes[-1].name]
        ends = {self.ties.find(dims[-1]) for dims in results if dims}
        for root, uses, size in list(self._roots()):
            made = [use for use in uses if use.slot.parameter == "out_features"]
            told = self.tells_apart or all(_HEAD.match(u.slot.attribute) for u in made)
            if {root} != ends or not made or not _is_made(uses) or not told:
                continue
            if any(use.slot.attribute == "lm_head" for use in uses):
                self._call(root, "vocab")
                self._rows(size)
            else:
                classes = self.tells_apart or self.untold
                self._call(root, "classes" if classes else "outputs")

    def _rows(self, vocab: int) -> None:
        """A table of words that is no embedding, for it is read in two places."""
        rows = self._wide_rows()
        for root, _, size in list(self._roots()):
            if size == vocab and root in rows:
                self._call(root, "vocab")

    def _wide_rows(self) -> set[Node]:
        """The rows of tables that are as wide as the model, or as its words."""
        find, wide = self.ties.find, (Term(("dim",)), Term(("width",)))
        return {
            find(rows)
            for rows, width in self.ties.rows
            if self.terms.get(find(width)) in wide
        }

    def _positions(self) -> None:
        """How many places of a sequence an embedding knows, and tables of places."""
        rows = self._wide_rows()
        found = [
            (root, size)
            for root, uses, size in self._roots()
            if root in rows and any(map(_is_place, uses))
        ]
        if len({size for _, size in found}) != 1:
            return
        positions = found[0][1]
        for root, _ in found:
            self._call(root, "positions")
        for root, uses, size in list(self._roots()):
            if size == positions and all(
                use.slot.parameter == "size" and use.slot.callee == "nn.Buffer"
                for use in uses
            ):
                self._call(root, "positions")

    def _depths(self) -> None:
        """How long lists of equal parts are; each by its own name if they differ.

        Where there are none: how often the one part is called.
        """
        found = [
            (root, self._towers(uses), size)
            for root, uses, size in self._roots()
            if {use.slot.parameter for use in uses} == {"depth"}
        ]
        rounds = [
            root
            for root, uses, _ in self._roots()
            if {use.slot.parameter for use in uses} == {"rounds"}
        ]
        if not found and len(rounds) == 1:
            self._call(rounds[0], "depth")
        if len({size for _, _, size in found}) == 1:
            for root, _, _ in found:
                self._call(root, "depth")
            return
        names = [tower for _, towers, _ in found for tower in towers]
        if len(names) == len(set(names)) == len(found):
            for root, towers, _ in found:
                self._call(root, f"{towers.pop()}_depth")

    def _towers(self, uses: list[_Use]) -> set[str]:
        """The first words of the model's attributes that hold these uses."""
        model = self.classes[-1]
        return {
            use.slot.attribute.partition("_")[0]
            if use.plan is model
            else self._tower(use.plan.name)
            for use in uses
        }

    def _tower(self, kind: str) -> str:
        """The first word of the model's attribute that holds a class; "" for two."""
        holders = {plan.name: set(_made(plan.members)) for plan in self.classes}
        found = []
        for attribute, made in self.classes[-1].members:
            waiting, seen = set(_made([(attribute, made)])), set()
            while waiting:
                name = waiting.pop()
                seen.add(name)
                waiting |= holders.get(name, set()) - seen
            if kind in seen:
                found.append(attribute.partition("_")[0])
        return found[0] if len(found) == 1 else ""

    # --- what follows from those ---

    def _follow(self) -> None:
        """Sizes that are products of named ones, until no more is found."""
        derived = "heads" in self.values and HEAD_DIM not in self.values
        if derived:
            self.terms = {root: term.cut() for root, term in self.terms.items()}
        while sum(map(self._followed, self.ties.products)):
            pass
        if derived:
            self.terms = {root: term.whole() for root, term in self.terms.items()}

    def _followed(self, product: Product) -> bool:
        whole = self.ties.find(product.whole)
        parts = [self.ties.find(factor) for factor in product.factors]
        open_ = [part for part in parts if part not in self.terms]
        known: Term | None = Term((), product.times)
        for part in parts:
            if part in self.terms and known is not None:
                known = known * self.terms[part]
        if known is None:
            return False
        if whole not in self.terms and not open_:
            self.terms[whole] = known
            return True
        if whole in self.terms and len(open_) == 1:
            term = self.terms[whole].divided(known)
            if term is not None and term.names:
                self.terms[open_[0]] = term
                return True
        return False


def _is_made(uses: list[_Use]) -> bool:
    """Whether features are what a layer gives, or a bias added to them."""
    return {use.slot.parameter for use in uses} <= {"out_features", "size"}


def _is_place(use: _Use) -> bool:
    """Whether a table's rows are for places of a sequence, as it is called."""
    names = f"{use.plan.name} {use.slot.attribute}".lower()
    return bool(_PLACES.search(names)) and "bias" not in names


def _is_vocabulary(slot: Slot) -> bool:
    words = ("pos", "type", "segment", "bias")
    return slot.parameter == "num_embeddings" and not any(
        word in slot.attribute.lower() for word in words
    )


def _made(members: list[tuple[str, Expression]]) -> Iterator[str]:
    """What the constructors of members call."""
    for _, made in members:
        for part in walk(made):
            if isinstance(part, Call):
                yield part.function
