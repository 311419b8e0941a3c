"""The builder: collects records, and the buffers that they read and write."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burnish.kernels.elementwise import merged
from burnish.kernels.library import Library
from burnish.kernels.records import READS, WHOLE, WHOLE_KINDS
from burnish.plan.cpu.buffers import Buffer, Mask, Operands, Spot, Step
from burnish.plan.cpu.layout import (
    LANES,
    PLAIN,
    Layout,
    length,
    places,
    split,
    strides,
)
from burnish.plan.cpu.table import Declined, need
from burnish.plan.graph import Array, Constant, Node, Value, constant


class Builder:
    """The state that lowering functions read and write.

    forms: by a value's place, its layouts, and their places. views: the place of a
    value that only views another one's elements, and its strides along axes.
    deferred: by place, what computes a value once its elements are asked for; rounded:
    the other value whose codes it has. codes, whole: see `quantized`; sums: see `sums`.
    readers: the nodes that read a value, by its place; results: places of the plan's.
    read: all of both. off: kernels to leave out, by name. done: the nodes so far, by
    their `id`. closed: the records that stay before all others. noting: those of them
    whose faults are looked for before anything is changed; has_changed: whether a node
    so far has effects within the run. updates: of parameters.
    assigned: buffers, and the values that they get behind a run. late: nodes that are
    made then. half: whether what products multiply is rounded to bfloat16.
    """

    def __init__(
        self,
        library: Library,
        threads: int,
        readers: dict[int, list[Node]],
        results: set[int],
        off: frozenset[str] = frozenset(),
        may_fault: bool = True,
        half: bool = False,
    ):
        self.width = library.width
        self.rows, self.window_rows = library.rows, library.window_rows
        self.threads, self.dots = threads, library.dots
        self.readers, self.results = readers, results
        self.read = results.union(readers)
        self.steps: list[Step] = []
        self.buffers: list[Buffer] = []
        self.forms: dict[int, dict[Layout, Spot]] = {}
        self.views: dict[int, tuple[Spot, tuple[int, ...]]] = {}
        self.deferred: dict[int, Callable[[], None]] = {}
        self.unnamed = 0  # places below 0 are those of values that no line gives
        self.rounded: dict[int, Any] = {}
        self.codes: dict[Any, Spot] = {}
        self.sums: dict[int, Any] = {}
        self.whole: dict[Any, Any] = {}
        self.constants: dict[int, Spot] = {}
        self._derived: dict[tuple[Any, ...], Constant] = {}
        self.faults: list[Buffer] = []  # one, where a record notes any
        self.in_place: set[int] = set()  # arguments that records write to
        self.updates: list[Any] = []
        self.draws: list[Any] = []  # of the segment that is being written
        self.masks: dict[int, Mask] = {}  # by place, those that keys give
        self.assigned: list[tuple[Value, Value]] = []
        self.late: list[Node] = []
        self.done: set[int] = set()
        self.closed = self.noting = 0
        self.has_changed = False
        self.label, self.off, self.may_fault = "", off, may_fault
        self.half = half
        self.least_in_place = 0  # bytes from which float weights are not packed

    @property
    def has_row_tiles(self) -> bool:
        """Whether tiles of rows have a kernel of their own, with vectors of 8."""
        return self.width == 8

    # --- values ---

    def source(self, value: Value, outside: bool = True) -> Spot:
        """An array from outside, plain: an argument, or the result of an eager step."""
        spot = self.new(value.size * value.dtype.itemsize, outside)
        self.forms[value.place] = {PLAIN: spot}
        return spot

    def new(self, size: int, outside: bool = False) -> Spot:
        """Memory of so many bytes."""
        buffer = Buffer(max(size, 4), outside)
        self.buffers.append(buffer)
        return Spot(buffer)

    def held(self, size: int) -> Spot:
        """An array that lives between runs, as an optimizer's state does."""
        spot = self.new(size, outside=True)
        spot.buffer.is_held = True
        return spot

    def result(self, value: Value, layout: Layout = PLAIN) -> Spot:
        """The place of a node's result; it is in this layout from now on."""
        size = length(value.shape, layout) * value.dtype.itemsize
        spot = self.new(size)
        self.forms.setdefault(value.place, {})[layout] = spot
        return spot

    def unnamed_value(self, shape: tuple[int, ...]) -> Value:
        """A value that no line gives, between two records of one node."""
        self.unnamed -= 1
        return Value(self.unnamed, shape, np.dtype(np.float32))

    def as_value(self, item: Any) -> Any:
        """An array that nothing changes as a value, as gradients of means are one."""
        if not isinstance(item, Constant) or item.sources or item.dtype != np.float32:
            return item
        value = self.unnamed_value(item.shape)
        dense = item.then(np.ascontiguousarray)
        self.alias(value, PLAIN, self.constant(dense))
        return value

    def has(self, value: Any, layout: Layout) -> bool:
        return isinstance(value, Value) and layout in self.forms.get(value.place, ())

    def _forms(self, value: Value) -> dict[Layout, Spot]:
        if not self.forms.get(value.place) and value.place in self.deferred:
            self.deferred[value.place]()
        return self.forms.setdefault(value.place, {})

    def knows(self, place: int) -> bool:
        """Whether records can read a value."""
        return any(place in known for known in (self.forms, self.views, self.deferred))

    def is_read_after(self, node: Node, place: int) -> bool:
        """Whether a node behind this one reads a value, or the plan gives it."""
        later = (each for each in self.readers.get(place, ()) if each is not node)
        return place in self.results or any(id(e) not in self.done for e in later)

    def blocked_axis(self, value: Value) -> int | None:
        """The channels' axis of a value that is, or would be computed, in blocks."""
        if not self.forms.get(value.place):
            if value.place in self.rounded:
                return self.blocked_axis(self.rounded[value.place].x)
            if value.place in self.sums:
                return self.blocked_axis(self.sums[value.place].a)
        for layout in self.forms.get(value.place, ()):
            if layout.kind == "blocked":
                return layout.axis
        return None

    def spot(self, value: Value | Constant, layout: Layout = PLAIN) -> Spot:
        """The place of a value in a layout; it is converted if need be."""
        if isinstance(value, Constant):
            return self.constant(value)
        forms = self._forms(value)
        if not forms:
            source, distances = self.views[value.place]
            target = self.result(value)
            self._copy_plain(value, source, distances, target)
        if layout not in forms:
            known = next(iter(forms))
            if known.kind == layout.kind == "blocked":  # of other axes
                self.spot(value, PLAIN)
                known = PLAIN
            spot = self.result(value, layout)
            self._convert(value.shape, forms[known], known, spot, layout)
        return forms[layout]

    def _copy_plain(self, value: Value, source: Spot, x: Any, target: Spot) -> None:
        shape, kind = value.shape, value.dtype
        if kind.itemsize < 4:
            self.add_whole("none", [(source, list(x), kind)], shape, target, kind)
        else:
            self.copy_items(kind, shape, source, x, target, strides(shape))

    def strided(self, value: Value | Constant) -> tuple[Spot, tuple[int, ...]]:
        """The place of a value's elements and their strides, uncopied if possible."""
        if isinstance(value, Value) and not self._forms(value):
            return self.views[value.place]
        return self.spot(value), strides(value.shape)

    def alias(self, value: Value, layout: Layout, spot: Spot) -> None:
        """A value that shares another one's place."""
        self.forms.setdefault(value.place, {})[layout] = spot

    def share(self, value: Value, other: Value) -> None:
        """A value that is another one, in all layouts."""
        self.forms[value.place] = self._forms(other)

    def constant(self, made: Constant) -> Spot:
        """An array of parameters, in its own layout."""
        if id(made) not in self.constants:
            buffer = Buffer(0, constant=made)
            self.buffers.append(buffer)
            self.constants[id(made)] = Spot(buffer)
        return self.constants[id(made)]

    def derived(
        self, change: Callable[..., Array], source: Constant, *details: Any
    ) -> Constant:
        """The constant change(source, *details), one for all who ask for the same.

        So a weight that several steps share is packed once.
        """
        key = change, source, *details
        if key not in self._derived:
            self._derived[key] = source.then(lambda a: change(a, *details))
        return self._derived[key]

    def table(self, array: Any, dtype: Any = np.int32) -> Spot:
        """An array of numbers that kernels go by."""
        held = np.ascontiguousarray(array, dtype)
        if not held.size:
            held = np.zeros(1, dtype)
        return self.constant(Constant(lambda: held, held.shape, held.dtype))

    def fault(self) -> Spot:
        """Where a record notes that a value is none that it can have.

        A call with effects has such records as long as it has had none: it cannot be
        made once more as it is.
        """
        is_early = self.may_fault or not self.has_changed
        need(is_early, "its numbers are known after something was changed")
        if not self.faults:
            self.faults.append(self.new(8, outside=True).buffer)
        return Spot(self.faults[0])

    # --- records ---

    def shares(self, work: float, most: int = 32) -> int:
        """The number of shares of a record; work: about a float's operations."""
        if self.threads == 1:
            return 1
        return max(1, min(4 * self.threads, most, 32, int(work // 25_000)))

    def add(self, kind: str, shares: int, *, flops: int = 0, **fields: Any) -> None:
        """Write a record; Spots among its fields are references, None is none."""
        moved = 0
        for item in fields.values():
            if isinstance(item, Spot):
                item.buffer.used(len(self.steps))
                moved += item.buffer.size
        self.steps.append(Step(kind, shares, fields, self.label, flops, moved))
        if fields.get("fault") and not self.may_fault:  # looked at before any change
            self.closed = self.noting = len(self.steps)

    def add_program(
        self, read: list[Any], out: Spot, shares: int, **fields: Any
    ) -> None:
        """A record of an element-wise program; read: see `Operands`."""
        for spot, *_ in read:
            spot.buffer.used(len(self.steps))
        table = self.operands(read)
        self.add("program", shares, out=out, table=table, other=-1, **fields)

    def operands(self, read: list[Any]) -> Spot:
        """The table of a program's operands."""

        def rows() -> Any:
            table = [
                [spot.reference, READS[mode], truth, *steps]
                for spot, mode, truth, steps in read
            ]
            return np.array(table, np.int64)

        shape = len(read), 9
        return self.constant(Operands(rows, shape, np.dtype(np.int64), read=read))

    def insert(self, items: list[tuple[int, Step]]) -> None:
        """Write records where others are; items: (before which of these, record), in
        order."""
        starts = [at for at, _ in items]
        for buffer in self.buffers:
            if buffer.first >= 0:
                buffer.first += bisect.bisect_right(starts, buffer.first)
                buffer.last += bisect.bisect_right(starts, buffer.last)
        for before, (at, step) in enumerate(items):
            self.steps.insert(at + before, step)
            for item in step.fields.values():
                if isinstance(item, Spot):
                    item.buffer.used(at + before)

    def take_back(self, steps: int, buffers: int, faults: int) -> None:
        """Keep so many of each, and forget the contents of the buffers that go."""
        gone = {id(buffer) for buffer in self.buffers[buffers:]}
        self.closed, self.noting = min(self.closed, steps), min(self.noting, steps)
        del self.steps[steps:], self.buffers[buffers:], self.faults[faults:]

        def kept(known: dict[Any, Spot]) -> dict[Any, Spot]:
            return {k: s for k, s in known.items() if id(s.buffer) not in gone}

        for step in self.steps:
            for name in ("codes", "values") if step.kind == "quantized" else ():
                spot = step.fields[name]
                if spot and id(spot.buffer) in gone:
                    step.fields[name] = None
        self.constants, self.codes = kept(self.constants), kept(self.codes)
        self.forms = {place: kept(forms) for place, forms in self.forms.items()}
        self.views = {
            k: v for k, v in self.views.items() if id(v[0].buffer) not in gone
        }

    def become(self, spot: Spot, target: Spot, size: int) -> bool:
        """Make a buffer a part of another one, if nothing is against it."""
        buffer = spot.buffer
        if (
            not buffer.is_arena
            or spot.offset
            or buffer.size != size
            or buffer.first < 0
        ):
            return False
        buffer.home = target
        target.buffer.used(buffer.first)
        target.buffer.used(buffer.last)
        return True

    def copy(
        self, shape: tuple[int, ...], source: Spot, x: Any, target: Spot, y: Any
    ) -> None:
        """Copy single-precision elements; x, y: distances along each axis of shape."""
        sizes, ways = merged([*shape] or [1], [[*x] or [0], [*y] or [0]])
        kept = _inner_last([*zip(sizes, *ways, strict=True)])
        if len(kept) > 6:
            raise Declined(f"its copy has {len(kept)} axes")
        kept = [(1, 0, 0)] * (6 - len(kept)) + kept
        fields: dict[str, int] = {}
        for i, (n, a, b) in enumerate(kept):
            fields |= {f"size{i}": n, f"x{i}": a, f"y{i}": b}
        work = math.prod(shape) * 2
        self.add("copy", self.shares(work), x=source, out=target, **fields)

    def copy_items(
        self, kind: Any, shape: Any, source: Spot, x: Any, target: Spot, y: Any
    ) -> None:
        """Copy elements of 4 bytes, or of 8 as two such each; else see `copy`."""
        if kind.itemsize == 8:
            shape = (*shape, 2)
            x, y = (*(2 * s for s in x), 1), (*(2 * s for s in y), 1)
        self.copy(shape, source, x, target, y)

    def add_whole(
        self, step: str, read: list[Any], shape: tuple[int, ...], out: Spot, kind: Any
    ) -> None:
        """A step on integers; read: (Spot, distances along axes, dtype), out is dense.

        step: a name of records.WHOLE.
        """
        ways = [[*distances] or [0] for _, distances, _ in read]
        sizes, ways = merged([*shape] or [1], ways)
        need(len(sizes) <= 6, f"it goes along {len(sizes)} axes")
        lead = 6 - len(sizes)
        sizes = [1] * lead + sizes
        fields: dict[str, Any] = {f"size{i}": n for i, n in enumerate(sizes)}
        for i, name in enumerate("abc"):
            spot, _, its_kind = read[i] if i < len(read) else (None, (), kind)
            way = [0] * lead + ways[i] if i < len(read) else [0] * 6
            fields |= {name: spot, f"{name}_kind": WHOLE_KINDS[str(its_kind)]}
            fields |= {f"{name}{axis}": n for axis, n in enumerate(way)}
        self.add(
            "whole", self.shares(8 * math.prod(sizes), math.prod(sizes[:5])), out=out,
            step=WHOLE[step], operands=len(read), to=WHOLE_KINDS[str(kind)], **fields,
        )  # fmt: skip

    def fill(self, out: Spot, shape: tuple[int, ...]) -> None:
        """Zeros everywhere."""
        nothing = self.constant(constant(np.float32(0)))
        self.copy(shape, nothing, (0,) * len(shape), out, strides(shape))

    def _convert(
        self, shape: tuple[int, ...], source: Spot, a: Layout, target: Spot, b: Layout
    ) -> None:
        """Copy a value from one layout to another."""
        label, self.label = self.label, f"{a.kind} to {b.kind}"
        cuts: list[tuple[int, int] | None] = [None]
        axis = (a if a.kind == "blocked" else b).axis
        if "blocked" in (a.kind, b.kind):
            whole = shape[axis] // LANES * LANES
            cuts = [(0, whole), (whole, shape[axis])]
        for cut in cuts:
            if cut is not None and cut[0] == cut[1]:
                continue
            sizes = split(shape, axis, cut)
            x, y = (places(shape, layout, axis, cut) for layout in (a, b))
            self.copy(sizes, source.beyond(x[1]), x[0], target.beyond(y[1]), y[0])
        self.label = label


def _inner_last(axes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The two axes last that are contiguous on one side, the writing one behind."""
    reading = [axis for axis in axes if axis[1] == 1 and axis[2] != 1]
    writing = [axis for axis in axes if axis[2] == 1]
    rest = [axis for axis in axes if axis not in reading and axis not in writing]
    return rest + reading + writing
