"""Log of what each pass changed, and what it left and why, for `--explain`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_MOST = 3
"""This many of a kind are named; the rest are counted."""


@dataclass
class Account:
    """What one step did and left, by the places where, over all its rounds.

    near: whether near misses are looked for and recorded; only `--explain` reads them.
    """

    near: bool = False
    done: dict[str, dict[str, None]] = field(default_factory=dict)
    missed: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)

    def did(self, what: str, where: str) -> None:
        """Record a change; it replaces what the step recorded as left there."""
        self.missed.pop(where, None)
        self.done.setdefault(what, {})[where] = None

    def left(self, what: str, where: str, why: str) -> None:
        """The step might have done this, but for this reason."""
        if where not in self.done.get(what, ()):
            self.missed.setdefault(where, {})[what, why] = None

    def lines(
        self, order: Mapping[str, int], present: Container[str] | None = None
    ) -> Iterator[str]:
        """Explain changes, then what was left; kinds by their first place in the file.

        order: where each place is in the file. present: the places that are still
        there, by default all; what was left at others has become something else.
        """

        def at(place: str) -> int:
            return order.get(place, len(order))

        done = [(what, sorted(places, key=at)) for what, places in self.done.items()]
        for what, places in sorted(done, key=lambda each: at(each[1][0])):
            yield f"{what}: {_counted(places)}"
        missed: dict[str, dict[str, list[str]]] = {}
        for place in sorted(self.missed, key=at):
            if present is None or place in present:
                for what, why in self.missed[place]:
                    missed.setdefault(what, {}).setdefault(why, []).append(place)
        for what, reasons in missed.items():
            for why, places in list(reasons.items())[:_MOST]:
                yield f"not {what}: {_counted(places)}: {why}"
            if len(reasons) > _MOST:
                yield f"not {what}: {len(reasons) - _MOST} more reasons"


def few(words: Sequence[str], most: int = _MOST) -> str:
    """The first of several words, and how many more there are."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def _counted(places: list[str]) -> str:
    first = f"at {places[0]!r}"
    return first if len(places) == 1 else f"{len(places)}, first {first}"


class Accounts:
    """The accounts of several steps, in the order in which they first ran."""

    def __init__(self, order: Mapping[str, int] | None = None, near: bool = False):
        self.order = order or {}
        self.near = near
        self.steps: dict[str, Account] = {}

    def of(self, step: str) -> Account:
        """The account of the step of this name."""
        return self.steps.setdefault(step, Account(self.near))

    def explain_all(
        self, explain: Callable[[str], None], present: Container[str] | None = None
    ) -> None:
        """A line for each step, and one below it for each thing that it did or left."""
        for step, account in self.steps.items():
            changes = sum(map(len, account.done.values()))
            entries = list(account.lines(self.order, present))
            word = "no change" if not changes else f"{changes} changes"
            if changes and len(entries) == 1:
                explain(f"{step}: {entries[0]}")
                continue
            explain(f"{step}: {'1 change' if changes == 1 else word}")
            for line in entries:
                explain(f"  {line}")
