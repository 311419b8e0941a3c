"""Fourier transforms, window functions, mel filters, and alignment in time."""

from __future__ import annotations

from typing import Any

from burnish.codegen.ops.rule.expressions import DEVICE, call, number, tensor
from burnish.codegen.ops.rule.registry import Result, onnx_op
from burnish.codegen.ops.rule.traits import OWN_SHAPE, UNBOUNDED
from burnish.codegen.ops.rule.words import dtype_name
from burnish.codegen.program import Call, Expression


@onnx_op("DFT", since=17)
def dft_along_axis(
    input_: Expression,
    dft_length: Expression | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Result:
    return _dft(input_, dft_length, axis, inverse, onesided)


@onnx_op("DFT", since=20, traits=OWN_SHAPE | UNBOUNDED)
def dft(
    input_: Expression,
    dft_length: Expression | None = None,
    axis: Expression | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Result:
    along = -2 if axis is None else number(axis)
    return _dft(input_, dft_length, along, inverse, onesided)


def _dft(
    x: Expression, length: Expression | None, axis: Any, inverse: int, onesided: int
) -> Result:
    return call(
        "dft",
        tensor(x),
        axis=axis,
        length=None if length is None else number(length),
        inverse=bool(inverse),
        onesided=bool(onesided),
    )


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
        onesided=bool(onesided),
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


@onnx_op("HannWindow", since=17, traits=OWN_SHAPE)
def hann_window(
    size: Expression, *, output_datatype: int = 1, periodic: int = 1
) -> Result:
    return _window("hann_window", size, output_datatype, periodic)


@onnx_op("HammingWindow", since=17, traits=OWN_SHAPE)
def hamming_window(
    size: Expression, *, output_datatype: int = 1, periodic: int = 1
) -> Result:
    shares = {"alpha": 25 / 46, "beta": 21 / 46}
    return _window("hamming_window", size, output_datatype, periodic, **shares)


@onnx_op("BlackmanWindow", since=17, traits=OWN_SHAPE)
def blackman_window(
    size: Expression, *, output_datatype: int = 1, periodic: int = 1
) -> Result:
    return _window("blackman_window", size, output_datatype, periodic)


def _window(
    function: str,
    size: Expression,
    output_datatype: int,
    periodic: int,
    **shares: float,
) -> Result:
    options = {"periodic": bool(periodic), "dtype": dtype_name(output_datatype)}
    made = call(function, number(size), **options, **shares)
    return Call("Tensor", (made,), (("device", DEVICE),))


@onnx_op("DynamicTimeWarping", domain="burnish", traits=OWN_SHAPE | UNBOUNDED)
def dynamic_time_warping(cost: Expression) -> Result:
    return call("dynamic_time_warping", cost)
