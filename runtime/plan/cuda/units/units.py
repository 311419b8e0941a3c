"""Units: a program's calls, joined where one launch does what several would."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from math import prod
from typing import Any

from burnish.backend.cuda.graphs import graphs
from burnish.backend.cuda.products import cublaslt
from burnish.capture import Program
from burnish.capture.line import Line, refs
from burnish.nn.core.param import Stored
from burnish.ops.arrays.shape import reshape, transpose
from burnish.ops.linalg.linear import linear
from burnish.ops.sequences.attention import scaled_dot_product_attention
from burnish.plan.cuda.units.convs import FusedConv, chain
from burnish.plan.cuda.units.half import Half, half_dtype
from burnish.plan.cuda.units.tails import AddNorm, GeluProduct, Readers, tail

FEW = 512
"""Rows of a product that do not fill a GPU by themselves."""


@dataclasses.dataclass(eq=False, slots=True)
class Unit:
    """Lines that are run as one.

    joined: computes what they give, or says that it cannot. done: the places that no
    later unit reads. half: what rounds values to half precision, if anything does.
    """

    lines: list[Line]
    joined: Callable[[list[Any]], bool] | None = None
    done: tuple[int, ...] = ()
    half: Half | None = None

    @property
    def label(self) -> str:
        """The names of the functions it calls."""
        return " + ".join(line.label for line in self.lines)

    @property
    def always(self) -> bool:
        """Whether it does more than to give results."""
        return any(line.call.always for line in self.lines)

    @property
    def reads(self) -> list[Any]:
        """The refs that it reads."""
        calls = [line.call for line in self.lines]
        return [ref for call in calls for ref in refs((call.args, call.options))]

    @property
    def gives(self) -> list[Any]:
        """The refs of its results."""
        return [ref for line in self.lines for ref in refs(line.call.results)]

    def make(self, values: list[Any]) -> None:
        """Compute its results; all values are kept."""
        if self.half is None:
            self.compute(values)
        else:
            self.half.compute(self, values)

    def compute(self, values: list[Any]) -> None:
        """Compute its results without rounding."""
        if self.joined is None or not self.joined(values):
            for line in self.lines:
                line.make(values)

    def run(self, values: list[Any]) -> None:
        """Compute its results, and free values that no later unit reads."""
        self.make(values)
        for place in self.done:
            values[place] = None


def units(
    program: Program, kept: dict[Any, Any], precision: str = "fp32"
) -> list[Unit]:
    """A program's lines, joined where one launch does what several would.

    Products of the same few rows, convolutions and what follows them, products and
    their GELU, sums and their norm.
    kept: where joined weights are, for all programs of a function.
    """
    found: list[Unit] = []
    beside: dict[Any, Unit] = {}
    fixed, stays = program.fixed, not program.has_effects
    dtype = half_dtype(precision)
    readers = _readers(program)
    behind = _chains(program, readers) if stays else {}
    inside = {id(line) for lines in behind.values() for line in lines}
    capped: dict[int, FusedConv] = {}
    for line in program.lines:
        if id(line) in behind:
            lines = behind[id(line)]
            fused = FusedConv(lines, fixed, kept)
            before = capped.get(fused.reads) if fused.by_channel else None
            if before is not None and len(readers[fused.reads]) == 1:
                fused.take_bound(before)
            elif fused.is_capped and not fused.by_channel:
                capped[lines[-1].place] = fused
            found.append(Unit(lines, fused))
            continue
        if id(line) in inside:
            continue
        lines = tail(line, readers, fixed, dtype is not None) if stays else []
        if lines and not inside & set(map(id, lines)):
            inside |= set(map(id, lines))
            found.append(Unit(lines, _tailed(lines, readers, fixed)))
            continue
        key = _product(line, fixed, readers) if stays else None
        if key in beside:
            beside[key].lines.append(line)
            continue
        found.append(Unit([line]))
        if key is not None:
            beside[key] = found[-1]
    for unit in found:
        if len(unit.lines) > 1 and unit.joined is None:
            unit.joined = _Products(unit.lines, fixed, kept)
    asked = {ref.place for ref in refs(program.results)} | set(fixed)
    for unit in reversed(found):
        used = {ref.place for ref in (*unit.reads, *unit.gives)}
        unit.done = tuple(sorted(used - asked))
        asked |= used
    if dtype is not None:
        half = Half(program, found, kept, dtype)
        for unit in found:
            unit.half = half
    return found


def _readers(program: Program) -> Readers:
    """The lines that read a place; None for results."""
    readers: Readers = {}
    for line in program.lines:
        for ref in refs((line.call.args, line.call.options)):
            readers.setdefault(ref.place, []).append(line)
    for ref in refs(program.results):
        readers.setdefault(ref.place, []).append(None)
    return readers


def _tailed(lines: list[Line], readers: Readers, fixed: Any) -> Any:
    """What computes a product and its GELU, or a sum and its norm."""
    if lines[0].function is linear:
        return GeluProduct(lines)
    return AddNorm(lines, fixed, len(readers[lines[0].place]) > 1)


def _chains(program: Program, readers: Readers) -> dict[int, list[Line]]:
    """Convolutions with the lines fused into them, by the `id` of the last line."""
    found: dict[int, list[Line]] = {}
    fixed, taken = program.fixed, set[int]()
    for line in program.lines:
        own = []
        for each in chain(line, readers, fixed):
            if id(each) in taken:  # a sum of two convolutions is the first one's
                break
            own.append(each)
        taken |= set(map(id, own))
        if own:
            found[id(own[-1])] = own
    return found


def _product(line: Line, fixed: dict[int, Any], readers: Readers) -> Any:
    """The key shared by products that can be joined; None for another line."""
    call = line.call
    if call.function is not linear or not line.plain or len(call.args) < 2:
        return None
    x, *own = call.args
    places = [ref.place for ref in refs(own)]
    if len(places) != len(own) or not refs(x):
        return None
    if prod(x.shape[:-1]) > FEW and not _is_attended(line, readers):
        return None
    if any(type(fixed.get(p)) is not type(fixed.get(places[0])) for p in places):
        return None
    plain = [isinstance(fixed.get(p), Stored) for p in places]
    return (x.place, len(own), own[0].dtype) if all(plain) else None


def _is_attended(line: Line | None, readers: Readers) -> bool:
    """Whether only attention reads a result; it takes parts of arrays as they are."""
    behind = [] if line is None else readers.get(line.place, [])
    if not behind:
        return False
    for then in behind:
        function = None if then is None else then.call.function
        if function is scaled_dot_product_attention:
            continue
        if function not in (reshape, transpose) or not _is_attended(then, readers):
            return False
    return True


class _Products:
    """x @ weight.T + bias for several weights, in one product."""

    def __init__(self, lines: list[Line], fixed: dict[int, Any], kept: dict[Any, Any]):
        self._x = lines[0].call.args[0].place
        self._places = [line.place for line in lines]
        rows = [line.call.args[1:] for line in lines]
        columns = zip(*rows, strict=True)
        self._own = [[fixed[ref.place] for ref in refs(column)] for column in columns]
        self._kept = kept

    def _whole(self, dtype: Any) -> list[Any]:
        """The weights as one, and the biases: made anew where one is another array."""
        arrays = [[item.data for item in items] for items in self._own]
        key = (*(id(item) for items in self._own for item in items), dtype)
        of = [array for several in arrays for array in several]
        known, whole = self._kept.get(key, ([], []))
        if len(known) != len(of) or any(map(operator.is_not, known, of)):
            whole = [
                graphs.joined(several).astype(dtype, copy=False) for several in arrays
            ]
            self._kept[key] = of, whole
        return whole

    def __call__(self, values: list[Any]) -> bool:
        x = values[self._x]
        y = cublaslt.linear(x.data, *self._whole(x.data.dtype))
        if y is None:
            return False
        start = 0
        for place, weight in zip(self._places, self._own[0], strict=True):
            end = start + weight.shape[0]
            values[place] = type(x).wrap(y[..., start:end], x.device)
            start = end
        return True
