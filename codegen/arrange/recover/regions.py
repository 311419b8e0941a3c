"""Regions inside a graph: chains of parts with one entry and one exit each.

Where branches run side by side no single tensor is live, but each branch still has one
value that enters a part of it and one that leaves: the single-entry single-exit regions
of Johnson, Pearson and Pingali's program structure tree, of a graph without cycles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from burnish.codegen.arrange.analysis.structural_hash import outline_of_any_size
from burnish.codegen.arrange.recover.segments import Cuts, Segment, dense
from burnish.codegen.program import Statement, Value

_NESTED = 32
"""In how many regions inside each other a statement is looked at, on average."""


class Regions:
    """The regions among some statements of a program."""

    def __init__(self, cuts: Cuts, statements: Sequence[Statement]):
        self.cuts = cuts
        self.flow = cuts.flow
        inside = set(statements)
        self.heavy = [s for s in cuts.heavy if s in inside]
        self.place = {s: i for i, s in enumerate(self.heavy)}
        self.after = [self._readers(s) for s in self.heavy]
        last = len(self.heavy)
        dominators = _dominators([self._makers(p) for p in range(last)])
        post = _dominators([[last - r for r in near] for near in self.after[::-1]])
        self.end = [last - place for place in post[:0:-1]]
        self.within, self.behind = Subtrees(dominators), Subtrees(post)

    def chains(self) -> list[list[Segment]]:
        """Chains of regions: each reads the result of the region before it.

        A region's inner chains stand in the list, too.
        """
        kept = self._worth_a_look()
        found: list[list[Segment]] = []
        seen: set[int] = set()
        for start in range(len(self.heavy)):
            if start in seen:
                continue
            entries = self._reads(start)
            if len(entries) > 1:
                continue
            entry = entries[0] if entries else None
            chain = [self._segment([start], entry, start)]
            here = start
            while self._is_linked(here):
                value, begin = self.heavy[here].targets[0], here
                here = self.end[here]
                if here in seen:
                    break
                seen.add(here)
                if begin in kept:
                    chain.append(self._segment(self._link(begin), value, here))
                else:
                    found.append(chain)
                    chain = []
            found.append(chain)
        return found

    def _worth_a_look(self) -> set[int]:
        """The places whose regions are few statements, or may recur.

        All of them where few are inside each other. Else those that are large must
        have the operators of another one, and the largest go first: with a bound for
        all together, deep nests take linear time.
        """
        linked = [p for p in range(len(self.heavy)) if self._is_linked(p)]
        ones = [1] * len(self.heavy)
        size = self._sums(linked, ones)
        left = _NESTED * len(self.heavy)
        if sum(size.values()) <= left:
            return set(linked)
        kept = {place for place in linked if size[place] <= _NESTED}
        operators = self._sums(
            linked, [hash(outline_of_any_size([s])) for s in self.heavy]
        )
        times = Counter(operators.values())
        for place in sorted(linked, key=lambda place: (-size[place], place)):
            if times[operators[place]] > 1 and size[place] <= left:
                left -= size[place]
                kept.add(place)
        return kept

    def _sums(self, places: Sequence[int], numbers: Sequence[int]) -> dict[int, int]:
        """The sum of the statements' numbers in the region behind each place.

        They are those that its end post-dominates and its start does not.
        """
        last = len(self.heavy)
        total = self.behind.sums([0, *reversed(numbers)])
        return {p: total[last - self.end[p]] - total[last - p] for p in places}

    def _readers(self, statement: Statement) -> list[int]:
        """The places that read a statement's results; the last for others."""
        end = len(self.heavy)
        read = {self.place.get(s, end) for s in self.flow.readers_of(statement)}
        if not self.flow.results.isdisjoint(statement.targets):
            read.add(end)
        return sorted(read) or [end]

    def _makers(self, place: int) -> set[int]:
        """The places that a place reads, counted from 1; 0 is the outside."""
        made = (self.flow.maker.get(v) for v in self._reads(place))
        return {self.place.get(s, -1) + 1 if s else 0 for s in made} or {0}

    def _is_linked(self, start: int) -> bool:
        """Whether a region is behind a place, up to its post-dominator.

        Nothing enters it but the place's only result, and nothing leaves it but what
        its last statement makes: the place dominates that statement.
        """
        last = self.end[start]
        if last == len(self.heavy) or len(self.heavy[start].targets) != 1:
            return False
        return self.within.holds(start + 1, last + 1)

    def _link(self, start: int) -> list[int]:
        """The places of the region behind a place."""
        within = {start}
        for place in range(start, self.end[start]):
            if place in within:
                within.update(self.after[place])
        within.discard(start)
        return sorted(within)

    def _reads(self, place: int) -> list[Value]:
        """The values that a place reads and that depend on the model's inputs."""
        read = self.flow.reads[self.heavy[place]]
        return [v for v in read if not v.host and self._is_fed(v)]

    def _is_fed(self, value: Value) -> bool:
        maker = self.flow.maker.get(value)
        return maker is None or maker in self.cuts.weighty

    def _segment(self, places: list[int], entry: Value | None, last: int) -> Segment:
        statements = self.cuts.in_order([self.heavy[place] for place in places])
        targets = self.heavy[last].targets
        end = targets[0] if len(targets) == 1 else None
        return Segment(statements, entry, end, sum(map(dense, statements)))


def _dominators(before: Sequence[Collection[int]]) -> list[int]:
    """The immediate dominator of each node of an acyclic graph; -1 for the root, 0.

    before: the predecessors of each node but the root, in topological order.
    """
    above = [-1]
    for near in before:
        first, *others = near
        for other in others:
            while first != other:
                first, other = min(first, other), max(first, other)
                other = above[other]
        above.append(first)
    return above


class Subtrees:
    """A tree whose parents stand before their children; the root is the first node.

    parents: for each node; any for the root.
    """

    def __init__(self, parents: Sequence[int]):
        self.parents = parents
        self.size = self.sums([1] * len(parents))
        self.first = [0] * len(parents)
        unused = [1] * len(parents)
        for node in range(1, len(parents)):
            parent = parents[node]
            self.first[node] = unused[parent]
            unused[parent] += self.size[node]
            unused[node] = self.first[node] + 1

    def sums(self, numbers: Sequence[int]) -> list[int]:
        """For each node the sum of the numbers of its subtree's nodes."""
        total = list(numbers)
        for node in reversed(range(1, len(total))):
            total[self.parents[node]] += total[node]
        return total

    def holds(self, node: int, other: int) -> bool:
        """Whether the other node is in a node's subtree."""
        begin = self.first[node]
        return begin <= self.first[other] < begin + self.size[node]
