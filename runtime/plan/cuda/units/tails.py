"""Products with their GELU, and sums with the norm of their rows, as one launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend.cuda.norms.residual import add_norm
from burnish.backend.cuda.products import cublaslt
from burnish.capture.line import Line, refs
from burnish.capture.ref import Ref
from burnish.nn.core.param import Stored
from burnish.ops.activation.smooth import gelu
from burnish.ops.elementwise.arithmetic import add
from burnish.ops.linalg.linear import linear
from burnish.ops.normalization import layer_norm_from, rms_norm_from

_NORMS = (layer_norm_from, rms_norm_from)

Readers = dict[int, list[Line | None]]
"""The lines that read a place; None for the program's results."""


class GeluProduct:
    """gelu(x @ weight.T + bias): computes the last line's result, or declines."""

    def __init__(self, lines: list[Line]):
        self._args = [ref.place for ref in refs(lines[0].call.args)]
        self._place = lines[1].place

    def __call__(self, values: list[Any]) -> bool:
        x, *own = (values[place] for place in self._args)
        weight, bias = (*(each.data for each in own), None)[:2]
        y = cublaslt.linear(x.data, weight, bias, "gelu")
        if y is None:
            return False
        values[self._place] = type(x).wrap(y, x.device)
        return True


class AddNorm:
    """x + z and norm(x + z), or declines.

    reads: the places of x and z, which may be of any precision. dtype: of the norm, and
    kept: of the sum, where they are not that of x and z. sum, place: where they are.
    """

    def __init__(self, lines: list[Line], fixed: dict[int, Any], is_kept: bool):
        first, second = lines[0].call, lines[1].call
        self.reads = [ref.place for ref in first.args]
        self.sum, self.place = lines[0].place, lines[1].place
        self._shape, self._is_kept = lines[0].shape, is_kept
        self._own = [None if a is None else fixed[a.place] for a in second.args[1:]]
        self._eps = second.options.get("eps", second.function.defaults["eps"])
        self._center = second.function is layer_norm_from
        self.dtype: np.dtype[Any] | None = None
        self.kept: np.dtype[Any] | None = None

    def __call__(self, values: list[Any]) -> bool:
        held = [values[place] for place in self.reads]
        x, z = (each.data for each in held)
        if x.shape != self._shape:
            x, z = z, x
        if x.shape != self._shape or (self.dtype is None and x.dtype != z.dtype):
            return False
        weight, bias = self._parameters()
        dtype = self.dtype or x.dtype
        made = add_norm(
            x,
            z,
            weight,
            bias,
            self._eps,
            center=self._center,
            dtype=dtype,
            kept=(self.kept or dtype) if self._is_kept else None,
        )
        if made is None:
            return False
        places = (self.sum, self.place) if self._is_kept else (self.place,)
        for place, y in zip(places, made[-len(places) :], strict=True):
            values[place] = type(held[0]).wrap(y, held[0].device)
        return True

    def _parameters(self) -> tuple[Any, Any]:
        """The norm's weight and bias, None for what it does not have."""
        weight, bias, *_ = (
            *(a if a is None else a.data for a in self._own),
            None,
            None,
        )
        return weight, bias


def tail(line: Line, readers: Readers, fixed: Any, is_half: bool) -> list[Line]:
    """A line and the one computed with it; none where there is no such one.

    is_half: whether values are of half precision, in which GELU's tanh form adds little
    to the error that roundings make: 1 to 7 % of a transformer's in fp16.
    """
    call, behind = line.call, readers.get(line.place, [])
    if not line.plain or line.place < 0:
        return []
    if call.function is linear:
        then = behind[0] if len(behind) == 1 else None
        if len(call.args) < 2 or not all(isinstance(a, Ref) for a in call.args[:2]):
            return []
        if then is None or then.call.function is not gelu or not then.plain:
            return []
        form = then.call.options.get("approximate", "none")
        return [line, then] if is_half or form == "tanh" else []
    if call.function is not add or line.call.results.dtype != np.float32:
        return []
    if not all(isinstance(a, Ref) and _is_array(a, fixed) for a in call.args):
        return []
    for then in behind:
        if then is not None and _is_norm(then, line, fixed):
            return [line, then]
    return []


def _is_array(ref: Ref, fixed: Any) -> bool:
    """Whether a place holds a value of the program, a parameter or a buffer."""
    return ref.place not in fixed or isinstance(fixed[ref.place], Stored)


def _is_norm(then: Line, line: Line, fixed: Any) -> bool:
    """Whether a line is the norm of another one's rows, by stored parameters."""
    if then.call.function not in _NORMS or not then.plain:
        return False
    call, rank = then.call, len(line.shape or ())
    own = call.args[1:]
    stored = all(
        a is None or (isinstance(a, Ref) and isinstance(fixed.get(a.place), Stored))
        for a in own
    )
    if not stored or call.args[0].place != line.place or then.place < 0:
        return False
    return rank > 0 and call.options.get("axis", -1) in (-1, rank - 1)
