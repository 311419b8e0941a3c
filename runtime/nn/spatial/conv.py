"""Convolutions. N batch, C channels, *S sizes in, *P sizes out.

One example may come without N, as in PyTorch.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from burnish import ops
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Param
from burnish.nn.spatial.padding import MODES
from burnish.ops._kernels.window import each, pairs
from burnish.tensor import Tensor


class Kernel(Layer):
    """Weight and bias, shared by convolutions and transposed convolutions."""

    rank: ClassVar[int]
    in_channels: int
    out_channels: int
    groups: int
    kernel_size: Any
    weight: Param
    bias: Param | None

    def _build(self, transposed: bool, bias: bool, dtype: Any) -> None:
        ins, outs, groups = self.in_channels, self.out_channels, self.groups
        if groups < 1 or ins % groups or outs % groups:
            raise InputError(
                f"{type(self).__name__}: expected channels that are multiples of "
                f"groups={groups}, got {ins} and {outs}"
            )
        shape = (ins, outs // groups) if transposed else (outs, ins // groups)
        kernel = sizes(self.kernel_size, self.rank)
        draw = init.uniform((shape[1] * prod(kernel)) ** -0.5)
        self.weight = Param(draw, (*shape, *kernel), dtype)
        self.bias = Param(draw, (outs,), dtype) if bias else None

    def _is_one(self, x: Tensor) -> bool:
        """Whether x is one example, without N."""
        return len(x.shape) == self.rank + 1


class _Conv(Kernel):
    """(N, in_channels, *S) -> (N, out_channels, *P)

    padding: a number, one for each axis, (before, after) pairs, "same" or "valid".
    padding_mode: "zeros", "reflect", "replicate" or "circular".
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = "float32",
    ):
        if padding_mode not in MODES:
            raise InputError(
                f"{type(self).__name__}: expected padding_mode among {list(MODES)}, "
                f"got {padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self.padding_mode = padding_mode
        self._build(False, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        if self._is_one(x):
            return self.forward(x[None])[0]
        return self._product(x, self.weight, self.bias)

    def _product(self, x: Any, weight: Any, bias: Any = None) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = self._padded(x), 0
        return ops.conv(
            x,
            weight,
            bias,
            stride=self.stride,
            padding=padding,
            dilation=self.dilation,
            groups=self.groups,
        )

    def _in_integers(self, x: Any) -> Any:
        if self._is_one(x):
            return None
        from burnish.nn.lowbit import integers  # for quantized inputs alone

        return integers.exact(self, x, self._product, axis=0, behind=self.rank)

    def _padded(self, x: Tensor) -> Tensor:
        kernel = self.weight.shape[2:]
        steps = [each(v, self.rank, "conv") for v in (self.dilation, self.stride)]
        spans = [d * (k - 1) + 1 for d, k in zip(steps[0], kernel, strict=True)]
        pads = pairs(self.padding, x.shape[2:], spans, steps[1], "conv")
        return ops.pad(x, ((0, 0), (0, 0), *pads), MODES[self.padding_mode])


class Conv1d(_Conv):
    __doc__ = _Conv.__doc__
    rank = 1


class Conv2d(_Conv):
    __doc__ = _Conv.__doc__
    rank = 2


class Conv3d(_Conv):
    __doc__ = _Conv.__doc__
    rank = 3


class _ConvTranspose(Kernel):
    """(N, in_channels, *P) -> (N, out_channels, *S): the adjoint of a convolution

    A call may name the *S that it wants: `layer(x, output_size=(9, 8))`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        dtype: Any = "float32",
    ):
        if padding_mode != "zeros":
            raise InputError(
                f"{type(self).__name__}: expected padding_mode 'zeros', "
                f"got {padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation
        self.groups = groups
        self.padding_mode = padding_mode
        self._build(True, bias, dtype)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        """Raises InputError for an output_size that no output_padding leads to."""
        if self._is_one(x):
            return self.forward(x[None], output_size)[0]
        return ops.conv_transpose(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            output_padding=self._rest(x, output_size),
            dilation=self.dilation,
            groups=self.groups,
        )

    def _rest(self, x: Tensor, output_size: Any) -> Any:
        """The output_padding that leads to output_size."""
        if output_size is None:
            return self.output_padding
        wanted = tuple(output_size)[-self.rank :]
        stride, dilation = (
            each(v, self.rank, "conv_transpose") for v in (self.stride, self.dilation)
        )
        kernel = self.weight.shape[2:]
        spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        pads = pairs(self.padding, x.shape[2:], spans, stride, "conv_transpose")
        least = [
            (n - 1) * s + span - before - after
            for n, s, span, (before, after) in zip(
                x.shape[2:], stride, spans, pads, strict=True
            )
        ]
        rest = tuple(w - n for w, n in zip(wanted, least, strict=True))
        room = [max(s, d) for s, d in zip(stride, dilation, strict=True)]
        if any(not 0 <= r < most for r, most in zip(rest, room, strict=True)):
            most = tuple(n + r - 1 for n, r in zip(least, room, strict=True))
            raise InputError(
                f"{type(self).__name__}: expected output_size between {tuple(least)} "
                f"and {most}, got {wanted}"
            )
        return rest


class ConvTranspose1d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 1


class ConvTranspose2d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 2


class ConvTranspose3d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    rank = 3


def sizes(kernel_size: Any, rank: int) -> tuple[int, ...]:
    """A kernel's size for every axis."""
    if isinstance(kernel_size, int):
        return (kernel_size,) * rank
    if len(kernel_size) != rank:
        raise InputError(f"kernel_size: expected {rank} numbers, got {kernel_size}")
    return tuple(kernel_size)
