"""Half: a program's values in half precision, with sums in single precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend.cuda.elementwise.fused import cast
from burnish.capture import CaptureError, Program
from burnish.capture.line import refs
from burnish.nn.core.param import Param
from burnish.ops.arrays.reduce import reduce_mean
from burnish.ops.elementwise.arithmetic import add
from burnish.ops.sequences.embedding import embedding
from burnish.plan.cuda.units.tails import AddNorm

if TYPE_CHECKING:
    from burnish.plan.cuda.units.units import Unit


def half_dtype(precision: str) -> np.dtype[Any] | None:
    """The dtype to which values are rounded; None for a precision of 32 bits."""
    if precision == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(np.float16) if precision == "fp16" else None


_SINGLE = np.dtype(np.float32)


class Half:
    """Rounding to 16 bits of all that depends on float32 arguments or parameters.

    What whole numbers, buffers and constants alone decide stays as it is: places,
    frequencies, masks. So do sums that only further sums and norms read, the values
    beside which a network's blocks compute, and what only means read. kept: rounded
    parameters, for all programs of a function.
    """

    def __init__(
        self,
        program: Program,
        units: list[Unit],
        kept: dict[Any, Any],
        dtype: np.dtype[Any],
    ):
        self._kept, self.dtype = kept, dtype
        self._places = set(range(program.takes))
        self._places |= {p for p, v in program.fixed.items() if isinstance(v, Param)}
        for unit in units:
            if any(ref.place in self._places for ref in unit.reads):
                self._places |= {r.place for r in unit.gives if r.dtype == _SINGLE}
        self._wide: set[int] = set()  # units that do not compute in half precision
        self._single = _sums(program, units)
        for unit in units:
            if isinstance(unit.joined, AddNorm):
                made = unit.joined
                made.dtype = _SINGLE if made.place in self._single else dtype
                made.kept = _SINGLE if made.sum in self._single else dtype
        self.is_tried = False
        """Whether units that fail are tried again in single precision."""

    def compute(self, unit: Unit, values: list[Any]) -> None:
        """Compute a unit's results, rounded."""
        dtype = self.dtype
        for ref in () if self._is_single(unit) else unit.reads:
            place = ref.place
            if place in self._places and _is(values[place], _SINGLE):
                values[place] = self._rounded(values[place])
        if id(unit) in self._wide:
            self._compute_wide(unit, values)
        else:
            try:
                unit.compute(values)
            except CaptureError:
                raise
            except Exception:  # float32 may do, or it is the call's error
                if not self.is_tried:
                    raise
                self._compute_wide(unit, values)
                self._wide.add(id(unit))
        for ref in unit.gives:
            place = ref.place
            rounds = place in self._places and place not in self._single
            if rounds and _is(values[place], _SINGLE):
                values[place] = _cast(values[place], dtype)

    def _is_single(self, unit: Unit) -> bool:
        """Whether a unit computes in single precision, whatever it reads."""
        if isinstance(unit.joined, AddNorm) or _averages(unit):
            return True
        return any(ref.place in self._single for ref in unit.gives)

    def _compute_wide(self, unit: Unit, values: list[Any]) -> None:
        held = {ref.place: values[ref.place] for ref in unit.reads}
        for place, value in held.items():
            if _is(value, self.dtype):
                values[place] = _cast(value, _SINGLE)
        unit.compute(values)
        for place, value in held.items():
            values[place] = value

    def _rounded(self, value: Any) -> Any:
        dtype = self.dtype
        if not isinstance(value, Param):
            return _cast(value, dtype)
        array, key = value.data, (id(value), dtype)
        known, made = self._kept.get(key, (None, None))
        if known is not array:
            made = _cast(value, dtype)
            self._kept[key] = array, made
        return made

    def widened(self, place: int, value: Any) -> Any:
        """A result as the plain call would give it."""
        rounded = place in self._places and value.dtype == self.dtype
        return _cast(value, _SINGLE) if rounded else value


def _sums(program: Program, units: list[Unit]) -> set[int]:
    """The places of sums, of their norms and of rows of tables that stay float32.

    Only sums, norms and means read them.
    """
    found: set[int] = set()
    readers: dict[int, list[Unit | None]] = {}
    for unit in units:
        for ref in unit.reads:
            readers.setdefault(ref.place, []).append(unit)
    for ref in refs(program.results):
        readers.setdefault(ref.place, []).append(None)

    def sums(unit: Unit | None, place: int) -> bool:
        if unit is None:
            return False
        if isinstance(unit.joined, AddNorm):
            return place in unit.joined.reads or place == unit.joined.sum
        return _averages(unit) or unit.lines[0].place in found

    for unit in reversed(units):
        is_sum = len(unit.lines) == 1 and unit.lines[0].function in (add, embedding)
        if not (is_sum or isinstance(unit.joined, AddNorm)):
            continue
        for ref in unit.gives:
            behind = readers.get(ref.place, [])
            kept = bool(behind) and all(sums(each, ref.place) for each in behind)
            if kept and ref.dtype == _SINGLE:
                found.add(ref.place)
    return found


def _averages(unit: Unit) -> bool:
    """Whether a unit is a mean, which float32 is summed for."""
    return len(unit.lines) == 1 and unit.lines[0].function is reduce_mean


def _is(value: Any, dtype: np.dtype[Any]) -> bool:
    return isinstance(value, Variable) and value.dtype == dtype


def _cast(value: Any, dtype: np.dtype[Any]) -> Any:
    from burnish.tensor import Tensor

    return Tensor.wrap(cast(value.data, dtype), value.device)
