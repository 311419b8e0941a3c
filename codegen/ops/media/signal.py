"""Fourier transforms, window functions, mel filters, and alignment in time."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import DEVICE, call, number, tensor
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.simple import called
from burnish.codegen.ops.rule.traits import OWN_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.words import dtype_name
from burnish.codegen.program import Call, Expression


def _dft(
    x: Expression,
    length: Expression | None,
    axis: Any,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Result:
    given = None if length is None else number(length)
    flags = {"inverse": inverse, "onesided": onesided}
    return call("dft", tensor(x), axis=axis, length=given, **flags)


@onnx_op("DFT", since=17, options=_dft)
def dft_along_axis(
    input_: Expression,
    dft_length: Expression | None = None,
    *,
    axis: int = 1,
    **flags: Any,
) -> Result:
    return _dft(input_, dft_length, axis, **flags)


@onnx_op("DFT", since=20, traits=OWN_SHAPE | UNBOUNDED, options=_dft)
def dft(
    input_: Expression,
    dft_length: Expression | None = None,
    axis: Expression | None = None,
    **flags: Any,
) -> Result:
    return _dft(input_, dft_length, -2 if axis is None else number(axis), **flags)


@onnx_op("STFT", since=17, traits=OWN_SHAPE | UNBOUNDED)
def stft(
    signal: Expression,
    frame_step: Expression,
    window: Expression | None = None,
    frame_length: Expression | None = None,
    *,
    onesided: int = 1,
) -> Result:
    return call(
        "stft",
        tensor(signal),
        None if window is None else tensor(window),
        frame_step=number(frame_step),
        frame_length=None if frame_length is None else number(frame_length),
        onesided=onesided,
    )


@onnx_op("MelWeightMatrix", since=17, traits=OWN_SHAPE)
def mel_weight_matrix(
    num_mel_bins: Expression,
    dft_length: Expression,
    sample_rate: Expression,
    lower_edge_hertz: Expression,
    upper_edge_hertz: Expression,
    *,
    output_datatype: int = 1,
) -> Result:
    given = (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    dtype = dtype_name(output_datatype)
    made = call("mel_weight_matrix", *map(number, given), dtype=dtype)
    return Call("Tensor", (made,), (("device", DEVICE),))


def _window(op_type: str, function: str, **shares: float) -> None:
    """Declare a window function; shares: the weights of its terms."""

    def rule(
        size: Expression, *, output_datatype: int = 1, periodic: int = 1
    ) -> Result:
        options = {"periodic": periodic, "dtype": dtype_name(output_datatype)}
        made = call(function, number(size), **options, **shares)
        return Call("Tensor", (made,), (("device", DEVICE),))

    rule.__name__ = function
    onnx_op(op_type, since=17, traits=OWN_SHAPE)(rule)


_window("HannWindow", "hann_window")
_window("HammingWindow", "hamming_window", alpha=25 / 46, beta=21 / 46)
_window("BlackmanWindow", "blackman_window")


called(
    "DynamicTimeWarping",
    "dynamic_time_warping",
    "cost",
    domain="burnish",
    traits=OWN_SHAPE | UNBOUNDED,
)
