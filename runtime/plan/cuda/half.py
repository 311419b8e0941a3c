"""Half: a program's values in half precision, with sums in single precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burnish.autodiff import Variable
from burnish.capture import CaptureError, Program
from burnish.nn.core.param import Param

if TYPE_CHECKING:
    from burnish.plan.cuda.units import Unit

DTYPES = {"fp16": np.dtype(np.float16)}
"""The dtype to which values are rounded, by the name of a precision."""

_SINGLE = np.dtype(np.float32)


class Half:
    """Rounding to 16 bits of all that depends on float32 arguments or parameters.

    What whole numbers, buffers and constants alone decide stays as it is: places,
    frequencies, masks. kept: rounded parameters, for all programs of a function.
    """

    def __init__(self, program: Program, units: list[Unit], kept: dict[Any, Any]):
        self._kept = kept
        self._places = set(range(program.takes))
        self._places |= {p for p, v in program.fixed.items() if isinstance(v, Param)}
        for unit in units:
            if any(ref.place in self._places for ref in unit.reads):
                self._places |= {r.place for r in unit.gives if r.dtype == _SINGLE}
        self._wide: set[int] = set()  # units that do not compute in half precision
        self.is_tried = False
        """Whether units that fail are tried again in single precision."""

    def compute(self, unit: Unit, values: list[Any], dtype: np.dtype[Any]) -> None:
        """Compute a unit's results, rounded."""
        for ref in unit.reads:
            place = ref.place
            if place in self._places and _is(values[place], _SINGLE):
                values[place] = self._rounded(values[place], dtype)
        if id(unit) in self._wide:
            self._compute_wide(unit, values, dtype)
        else:
            try:
                unit.compute(values)
            except CaptureError:
                raise
            except Exception:
                if not self.is_tried:
                    raise
                self._compute_wide(unit, values, dtype)
                self._wide.add(id(unit))
        for ref in unit.gives:
            place = ref.place
            if place in self._places and _is(values[place], _SINGLE):
                values[place] = _cast(values[place], dtype)

    def _compute_wide(self, unit: Unit, values: list[Any], dtype: Any) -> None:
        held = {ref.place: values[ref.place] for ref in unit.reads}
        for place, value in held.items():
            if _is(value, dtype):
                values[place] = _cast(value, _SINGLE)
        unit.compute(values)
        for place, value in held.items():
            values[place] = value

    def _rounded(self, value: Any, dtype: np.dtype[Any]) -> Any:
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
        rounded = place in self._places and value.dtype in DTYPES.values()
        return _cast(value, _SINGLE) if rounded else value


def _is(value: Any, dtype: np.dtype[Any]) -> bool:
    return isinstance(value, Variable) and value.dtype == dtype


def _cast(value: Any, dtype: np.dtype[Any]) -> Any:
    from burnish.tensor import Tensor

    return Tensor.wrap(value.data.astype(dtype), value.device)
