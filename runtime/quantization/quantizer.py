"""Quantizer: a calibration and a scheme, for a model's weights."""

from __future__ import annotations

from burnish.errors import InputError
from burnish.lowbit import (
    Calibration,
    Level,
    Packed,
    QuantizedTensor,
    QuantScheme,
)
from burnish.nn import Module, Param, ParamGroup
from burnish.nn.core.fit import is_float
from burnish.quantization.report import Loss, Report


class Quantizer:
    """Makes weights small: `model.quantize_weights(Quantizer(calibration, scheme))`.

    calibration: which range is kept; None is all of it. scheme: None is 8 bits,
    symmetric, one scale for each output (the first axis), which loses little anywhere.

    report: what the last `quantize` did; None before.
    """

    def __init__(
        self, calibration: Calibration | None = None, scheme: QuantScheme | None = None
    ):
        self.calibration = calibration or Calibration.min_max()
        self.scheme = scheme or QuantScheme(level=Level.channel(0))
        self.report: Report | None = None

    def quantize(self, module: Module, group: ParamGroup | None = None) -> None:
        """Quantize the module's parameters in place.

        group: these; None is all of floating point with two axes or more, which leaves
        out biases and norms. Raises InputError when there are none, or when one is not
        finite, before anything is changed.
        """
        before, made, losses = module.num_bytes, [], []
        for path, param in chosen(module, group).items():
            packed = self.pack(path, param)
            losses.append(Loss.of(path, param.data, packed))
            made.append((param, packed))
        for param, packed in made:
            param.assign(QuantizedTensor(packed, param.device.inner()))
        self.report = Report(losses, before, module.num_bytes)

    def pack(self, path: str, param: Param) -> Packed:
        """The packed form of a parameter; errors name its path."""
        try:
            array = param.data
            params = self.scheme.calibrated(array, self.calibration)
            return self.scheme.pack(array, params)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def chosen(module: Module, group: ParamGroup | None) -> dict[str, Param]:
    """The parameters to be made small by path; InputError when there are none."""
    every = (group or ParamGroup.from_predicate(_is_weight)).params(module)
    found = {path: p for path, p in every.items() if is_float(p.dtype) and p.size}
    if not found:
        raise InputError(
            f"quantization: expected floating-point parameters with values, found none "
            f"among {len(every)} of {type(module).__name__}"
        )
    return found


def _is_weight(path: str, param: Param) -> bool:
    return param.ndim >= 2 and not param.is_adapter
