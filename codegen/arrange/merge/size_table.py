"""A table of the sizes of merged classes: one column a slot, one row a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burnish.codegen.arrange.analysis.holes import Hole, Slot, as_expression
from burnish.codegen.arrange.merge.progressions import grown
from burnish.codegen.names.identifier import Identifier, free
from burnish.codegen.program import (
    BinOp,
    ClassPlan,
    Expression,
    Literal,
    Name,
    SelfAttr,
)

_SIDES = (("in_channels", "out_channels"), ("in_features", "out_features"))
_SHARED = {frozenset(_SIDES[0]): "channels", frozenset(_SIDES[1]): "features"}
_ROLES = {
    (6, (1, 3)): "windows",
    (6, (1, 2)): "windows",
    (5, (3,)): "heads",
    (4, (2,)): "heads",
}
"""Names of sizes by a reshape's rank and axis."""

_CUT = frozenset(("size", *_ROLES.values()))

_TELLING = 3
"""A size that is a multiple in fewer classes may be one by chance."""

_TIMES = (2, 3, 4, 6)
"""The factors of multiples that are looked for."""

_MULTIPLE = 16
"""From here on a multiple inside a class is no design but chance."""

_SHAPED = frozenset(
    ("kernel_size", "stride", "padding", "dilation", "output_padding", "groups")
)
"""Arguments whose numbers do not follow from other sizes."""


class _Absent:
    """The size of a part that a class lacks."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()

Column = tuple[Any, ...]
"""One size in each of several classes; ABSENT where the class lacks the part."""

Key = tuple[str, Column]
"""The key of a size: columns of one kind with equal numbers are one size."""


class Table:
    """The sizes of several classes, and the arguments that they become.

    plan: the merged class with its holes; columns: each hole's sizes, one a class.
    """

    def __init__(self, plan: ClassPlan, holes: list[Hole], columns: list[Column]):
        self.plan = plan
        self.slots = slots = [hole.slot for hole in holes]
        self.places = {hole: place for place, hole in enumerate(holes)}
        self.columns = columns
        self.attributes = {name for name, _ in plan.members}
        self.names: dict[Key, str] = {}
        self.derived: dict[Key, tuple[str, int, Key]] = {}
        self.keys = [self._key(i) for i in range(len(slots))]
        self._tie_patches()
        self._fill()
        varying = [k for k in dict.fromkeys(self.keys) if _varies(k[1])]
        whole = [k for k in varying if ABSENT not in k[1]]
        partial = [k for k in varying if ABSENT in k[1]]
        self.same = {key: self._like(key, whole) for key in partial}
        own = (key for key in partial if self.same[key] is None)
        bases: list[Key] = []
        for key in (*sorted(whole, key=self._rank), *own):
            if (found := self._from(key, bases)) is not None:
                self.derived[key] = found
            else:
                bases.append(key)
        for key in (key for key in varying if key in bases):
            self.names[key] = self._name(key)
        self._rename_inner()

    # --- which sizes are one ---

    def _key(self, place: int) -> Key:
        slot, column = self.slots[place], self.columns[place]
        if any(isinstance(value, bool | str) or value is None for value in column):
            return f"{slot.parameter}:", column
        own = slot.parameter in _SHAPED and slot.parameter != "groups"
        return slot.parameter if own else "", column

    def _tie_patches(self) -> None:
        """Unify kernel and stride of windows that do not overlap."""
        kernels = {column for kind, column in self.keys if kind == "kernel_size"}
        self.keys = [
            ("kernel_size", column) if kind == "stride" and column in kernels else key
            for key in self.keys
            for kind, column in (key,)
        ]

    def _fill(self) -> None:
        """Unify input and output sizes in classes without the part between them."""
        for place, slot in enumerate(self.slots[:-1]):
            key, after = self.keys[place], self.slots[place + 1]
            wanted = (slot.parameter, after.parameter)
            if ABSENT not in key[1] or wanted not in _SIDES:
                continue
            inner = self.keys[place + 1]
            whole = [k for k in self.keys if ABSENT not in k[1]]
            leaving = self._like(inner, list(dict.fromkeys(whole)))
            if leaving is None:
                continue
            filled = tuple(
                b if a is ABSENT else a for a, b in zip(key[1], leaving[1], strict=True)
            )
            self.keys = [(k[0], filled) if k == key else k for k in self.keys]

    def _from(self, key: Key, bases: list[Key]) -> tuple[str, int, Key] | None:
        """A size as a multiple of a named one, where enough classes agree."""
        kind, column = key
        if not _is_whole(column):
            return None
        bases = [base for base in bases if _is_whole(base[1])]
        if kind == "padding":
            for base in bases:
                pairs = _pairs(column, base[1])
                if base[0] == "kernel_size" and all(a == b // 2 for a, b in pairs):
                    return "//", 2, base
                if base[0] == "dilation" and (by := _ratio(column, base[1])):
                    return "*", by, base
        if self._is_passed(key):
            for base in bases:
                is_affine = base[0] == kind and len(set(column)) >= _TELLING
                if is_affine and (by := _ratio(base[1], column)) in _TIMES:
                    return "//", by, base
        inner = self._is_inner(key)
        least = 2 if inner else _TELLING
        for base in bases:
            pairs = _pairs(column, base[1])
            if base[0] != kind or len({size for size, _ in pairs}) < least:
                continue
            if self._is_inner(base) and not inner:
                continue  # a reshape of its result does not determine a layer's size
            if inner and all(size == by * by for size, by in pairs):
                return "**", 2, base
            by = _ratio(column, base[1])
            if by in _TIMES or (inner and 1 < by < _MULTIPLE):
                return "*", by, base
        return None

    def _rank(self, key: Key) -> tuple[bool, bool, int]:
        """A sort key: sizes from which others follow come first."""
        sizes = [size for size in key[1] if type(size) is int]
        return key[0] == "padding", self._is_passed(key), max(sizes, default=0)

    def _is_passed(self, key: Key) -> bool:
        """Whether a size is only passed to the source's own classes."""
        return all(
            s.callee and "." not in s.callee and s.parameter not in _CUT
            for s in self._uses(key)
        )

    def _is_inner(self, key: Key) -> bool:
        """Whether a size is in the forward or a buffer, not in a layer."""
        return all(not s.attribute or s.parameter in _CUT for s in self._uses(key))

    def _like(self, key: Key, whole: list[Key]) -> Key | None:
        """The size that an optional part's size equals in every class with the part."""
        kind, column = key
        found = [
            other for other in whole if other[0] == kind and agree(column, other[1])
        ]
        parameters = {slot.parameter for slot in self._uses(key)}
        same = [k for k in found if parameters & {s.parameter for s in self._uses(k)}]
        if any(parameter.startswith("out_") for parameter in parameters):
            same.reverse()
        return next(iter([*same, *found]), None)

    def _uses(self, key: Key) -> list[Slot]:
        return [s for s, k in zip(self.slots, self.keys, strict=True) if k == key]

    # --- names ---

    def _name(self, key: Key) -> str:
        """A name for a size that varies, by where it is used."""
        uses = self._uses(key)
        parameters = dict.fromkeys(slot.parameter for slot in uses)
        first = next(iter(parameters))
        wanted = next(
            (short for pair, short in _SHARED.items() if pair <= parameters.keys()),
            "features" if first == "normalized_shape" else first,
        )
        if any(isinstance(value, bool) for value in key[1]):
            wanted = first.removeprefix("is_")
        elif self._is_inner(key):
            wanted = _role(uses)
        taken = {*self.names.values(), "self"}
        if wanted in taken and wanted in _SHARED.values():
            wanted = f"hidden_{wanted}"
        tail = wanted.rpartition("_")[2]
        callees = {slot.callee.partition("#")[0] for slot in uses}
        part = callees.pop() if len(callees) == 1 else ""
        if wanted.startswith("hidden_") and "." not in part and part:
            wanted = f"{Identifier.variable(part).split('_')[0]}_{tail}"
        if wanted in taken and uses[0].attribute:
            wanted = f"{uses[0].attribute}_{tail}"
        return free(Identifier(wanted), taken | self.attributes)

    def _rename_inner(self) -> None:
        """Name a size between input and output sizes `hidden`."""
        names = set(self.names.values())
        for short in _SHARED.values():
            if {f"in_{short}", f"out_{short}", short} <= names:
                key = next(k for k, name in self.names.items() if name == short)
                self.names[key] = free(Identifier(f"hidden_{short}"), names)

    # --- how they are written ---

    @property
    def held(self) -> list[str]:
        """The arguments that the forward reads."""
        read = {
            self._root(key)
            for key, slot in zip(self.keys, self.slots, strict=True)
            if not slot.attribute and _varies(key[1])
        }
        return [name for key, name in self.names.items() if key in read]

    def _root(self, key: Key) -> Key:
        key = self.same.get(key) or key
        return self.derived[key][2] if key in self.derived else key

    def given(self, place: int) -> dict[str, Any]:
        """The arguments of one class's constructor call; absent parts have none."""
        return {
            name: key[1][place]
            for key, name in self.names.items()
            if key[1][place] is not ABSENT
        }

    def usual(self) -> dict[str, Any]:
        """The defaults of arguments: values of the callee that some class keeps.

        Sizes in progression have none, so that one constructor can make all.
        """
        found: dict[str, Any] = {}
        for key, name in self.names.items():
            default = self._uses(key)[0].default
            if ABSENT in key[1]:
                found[name] = None
            elif isinstance(default, bool) or (
                default is not None and default in key[1] and not _is_grown(key[1])
            ):
                found[name] = default
        return found

    def spelled(self, hole: Hole) -> Expression:
        """The expression for a hole: a literal, an argument, a multiple of one."""
        place = self.places[hole]
        slot, key = self.slots[place], self.keys[place]
        if not _varies(key[1]):
            return as_expression(next(size for size in key[1] if size is not ABSENT))
        root = self._root(key)
        name = self.names[root]
        known: Expression = Name(name) if slot.attribute else SelfAttr((name,))
        key = self.same.get(key) or key
        if key not in self.derived:
            return known
        operator, by, _ = self.derived[key]
        if operator == "**":
            return BinOp("*", known, known)
        if operator == "//":
            return BinOp("//", known, Literal(by))
        return known if by == 1 else BinOp("*", Literal(by), known)


def _role(uses: list[Slot]) -> str:
    """A size's name, by the callee that takes it or by its axis in reshapes."""
    for slot in uses:
        if slot.attribute and slot.parameter in _ROLES.values():
            return slot.parameter
    places: dict[tuple[int, int], list[int]] = {}
    for slot in uses:
        if slot.rank:
            places.setdefault((slot.call, slot.rank), []).append(slot.place)
    found = []
    for (_, rank), where in places.items():
        last = "features" if where == [rank - 1] else ""
        found.append(_ROLES.get((rank, tuple(sorted(where))), last))
    parameters = {slot.parameter for slot in uses}
    usual = (
        parameters.pop() if len(parameters) == 1 and parameters <= _SHAPED else "size"
    )
    return next((role for role in found if role), usual)


def _varies(column: Sequence[Any]) -> bool:
    return len({repr(size) for size in column if size is not ABSENT}) > 1


def _is_whole(column: Column) -> bool:
    """Whether sizes are integers: windows may have one for each axis."""
    return all(type(size) is int for size in column if size is not ABSENT)


def _is_grown(column: Column) -> bool:
    sizes = [size for size in column if type(size) is int]
    return len(sizes) == len(column) > 1 and grown(sizes) is not None


def _pairs(column: Column, base: Column) -> list[tuple[Any, Any]]:
    """Two sizes of the classes that have both."""
    pairs = zip(column, base, strict=True)
    return [(a, b) for a, b in pairs if a is not ABSENT and b is not ABSENT]


def agree(column: Column, other: Column) -> bool:
    """Whether both have one size in every class that has the first."""
    return all(a in (ABSENT, b) for a, b in zip(column, other, strict=True))


def _ratio(column: Column, base: Column) -> int:
    """How many times the base each size is, where it is one whole number; else 0."""
    pairs = _pairs(column, base)
    found: set[int] = {a // b if b and a % b == 0 else 0 for a, b in pairs}
    return found.pop() if len(found) == 1 else 0
