"""Regions inside a graph: chains of parts with one entry and one exit each.

Where branches run side by side no single tensor is live, but each branch still has one
value that enters a part of it and one that leaves: the single-entry single-exit regions
of Johnson, Pearson and Pingali's program structure tree, of a graph without cycles.
"""

from __future__ import annotations

from collections.abc import Sequence

from burnish.codegen.arrange.recover.segments import Cuts, Segment, dense
from burnish.codegen.program import Statement, Value


class Regions:
    """The regions among some statements of a program."""

    def __init__(self, cuts: Cuts, statements: Sequence[Statement]):
        self.cuts = cuts
        self.flow = cuts.flow
        inside = set(statements)
        self.heavy = [s for s in cuts.heavy if s in inside]
        self.place = {s: i for i, s in enumerate(self.heavy)}
        self.after = [self._readers(s) for s in self.heavy]
        self.end = self._post_dominators()

    def chains(self) -> list[list[Segment]]:
        """Regions in a row, each of which reads what the one before it makes.

        A region's inner chains stand in the list, too.
        """
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
            while (link := self._link(here)) is not None:
                value = self.heavy[here].targets[0]
                here = self.end[here]
                if here in seen:
                    break
                chain.append(self._segment(link, value, here))
                seen.add(here)
            found.append(chain)
        return found

    def _readers(self, statement: Statement) -> list[int]:
        """The places that read a statement's results; the last for others."""
        end = len(self.heavy)
        read = {self.place.get(s, end) for s in self.flow.readers_of(statement)}
        if not self.flow.results.isdisjoint(statement.targets):
            read.add(end)
        return sorted(read) or [end]

    def _post_dominators(self) -> list[int]:
        """For each place the first one that all paths from it go through.

        The place behind the last is the outside. Places are in the order of data flow,
        so that a backward sweep meets all readers of a place before it.
        """
        end = [0] * len(self.heavy)
        for place in reversed(range(len(self.heavy))):
            first, *others = self.after[place]
            for other in others:
                while first != other:
                    first, other = min(first, other), max(first, other)
                    first = end[first]
            end[place] = first
        return end

    def _link(self, start: int) -> list[int] | None:
        """The region behind a place, up to its post-dominator; None where none is.

        Nothing enters it but the place's only result, and nothing leaves it but what
        its last statement makes.
        """
        last = self.end[start]
        if last == len(self.heavy) or len(self.heavy[start].targets) != 1:
            return None
        within = {start}
        for place in range(start, last):
            if place in within:
                within.update(self.after[place])
        within.discard(start)
        made = {*self.heavy[start].targets}
        made.update(t for place in within for t in self.heavy[place].targets)
        if any(v not in made for place in within for v in self._reads(place)):
            return None
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
