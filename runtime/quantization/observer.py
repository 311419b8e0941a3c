"""Observer: records the range of a layer's inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import namespace
from burnish.errors import InputError
from burnish.lowbit import QParams
from burnish.nn import Module
from burnish.quantization.quantizer import Quantizer

KEPT = 1 << 18  # values, of all that were seen


class Observer(Module):
    """x -> x, noted. Minimum and maximum are exact.

    Other calibrations see an even selection of all values, at most 262,144 of them.
    """

    def __init__(self, quantizer: Quantizer):
        self.quantizer = quantizer
        self.low: Any = None
        self.high: Any = None
        self._seen: list[Any] = []
        self._step = 1

    def forward(self, x: Any) -> Any:
        """Raises InputError unless x is finite."""
        array = x.data if isinstance(x, Variable) else x
        if getattr(array, "dtype", np.dtype(bool)).kind not in "fV":
            return x
        xp, scheme = namespace(array), self.quantizer.scheme
        params = self.quantizer.calibration
        low, high = type(params)().ranges(
            array, scheme, scheme.level.blocks(array.shape)
        )
        if self.low is not None:
            low, high = xp.minimum(low, self.low), xp.maximum(high, self.high)
        self.low, self.high = low, high
        if params.method != "min_max":
            self._keep(array.reshape(-1).astype(np.float32))
        return x

    def _keep(self, flat: Any) -> None:
        xp = namespace(flat)
        self._seen.append(flat[:: self._step])
        if sum(part.size for part in self._seen) > KEPT:
            every = xp.concatenate(self._seen)
            while every.size > KEPT:
                every, self._step = every[::2], 2 * self._step
            self._seen = [every]

    def params(self, path: str) -> QParams:
        """Scales and zero points for all that was seen.

        path: the layer's, for the error when that was nothing.
        """
        if self.low is None:
            raise InputError(
                f"{path}: expected batches that reach this layer, none did; leave it "
                f"out with a group"
            )
        scheme, calibration = self.quantizer.scheme, self.quantizer.calibration
        if not self._seen:
            return scheme.params(self.low, self.high)
        if scheme.level.kind != "tensor":
            raise InputError(
                f"{path}: expected one scale per tensor for {calibration.method} of "
                f"inputs, got {scheme.level}; use Calibration.min_max()"
            )
        return scheme.calibrated(
            namespace(self.low).concatenate(self._seen), calibration
        )
