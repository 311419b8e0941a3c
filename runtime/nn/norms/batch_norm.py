"""Normalisation by statistics of the batch. N batch, C channels, *S any further axes.

Batch statistics act while the module is `training`, that is on an autodiff device.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from burnish import ops
from burnish.backend import namespace
from burnish.errors import InputError
from burnish.nn import init
from burnish.nn.core.layer import Layer
from burnish.nn.core.param import Buffer, Param
from burnish.ops._kernels.blocks import blockwise
from burnish.steps import step
from burnish.tensor import Tensor


class _BatchNorm(Layer):
    """(N, num_features, *S) -> the same shape, each channel standardized

    In training by the batch, else by the running statistics, which move by `momentum`
    (None: their plain average) towards each batch's.
    """

    ranks: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        shape = (num_features,)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = Param(init.ones, shape, dtype) if affine else None
        has_bias = affine and bias
        self.bias = Param(init.zeros, shape, dtype) if has_bias else None
        if track_running_stats:
            self.running_mean = Buffer(init.zeros, shape, dtype)
            self.running_var = Buffer(init.ones, shape, dtype)
            self.num_batches_tracked = Buffer(init.zeros, (), "int64")

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        if self.track_running_stats and not self.training:
            weight = self.weight if self.weight is not None else 1.0
            bias = self.bias if self.bias is not None else 0.0
            held = self.running_mean, self.running_var
            return ops.batch_norm(x, *held, weight, bias, eps=self.eps)
        y, mean, var = ops.batch_norm_train(x, self.weight, self.bias, eps=self.eps)
        if self.track_running_stats:
            tracked = counted(self.num_batches_tracked)
            self.num_batches_tracked.assign(tracked)
            share = _share(tracked) if self.momentum is None else self.momentum
            self._follow(mean, var, prod(x.shape) // self.num_features, share)
        return y

    def _follow(self, mean: Any, var: Any, count: int, share: Any) -> None:
        """Move the running statistics towards a batch's; the variance made unbiased."""
        if count < 2:
            raise InputError(
                f"{type(self).__name__}: expected more than one value for each channel "
                f"in training, got one"
            )
        news = ((self.running_mean, mean), (self.running_var, var))
        for scale, (running, new) in zip((1, count / (count - 1)), news, strict=True):
            moved = moved_towards(running, new, share, scale=scale)
            running.assign(moved, running.dtype)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.affine else text.replace(", bias=False", "")

    def _check(self, x: Tensor) -> None:
        if len(x.shape) not in self.ranks or x.shape[1] != self.num_features:
            raise InputError(
                f"{type(self).__name__}: expected x with {self.num_features} channels "
                f"in axis 1 and {' or '.join(map(str, self.ranks))} axes, "
                f"got shape {x.shape}"
            )


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ranks = (5,)


class _InstanceNorm(_BatchNorm):
    """(N, num_features, *S) -> the same shape, each channel of an example standardized

    With track_running_stats, inference uses the running statistics instead.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        bias: bool = True,
        dtype: Any = "float32",
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, bias, dtype
        )

    def forward(self, x: Tensor) -> Tensor:
        if len(x.shape) + 1 in self.ranks:  # one example, without N
            return self.forward(x[None])[0]
        if self.track_running_stats and not self.training:
            return super().forward(x)
        self._check(x)
        axes = tuple(range(2, len(x.shape)))
        if self.track_running_stats:
            _, mean, var = ops.standardize(x.detach(), axes=axes, eps=self.eps)
            mean, var, share = _over_batch(mean), _over_batch(var), self.momentum or 0.0
            self._follow(mean, var, prod(x.shape[2:]), share)
        return ops.instance_norm(x, weight=self.weight, bias=self.bias, eps=self.eps)


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ranks = (5,)


@step
def counted(tracked: Any) -> Any:
    """The number of batches with one more."""
    return tracked + 1


@step
def _share(tracked: Any) -> Any:
    """The last batch's share of all."""
    return 1 / tracked


@step
def moved_towards(old: Any, new: Any, share: Any, *, scale: float) -> Any:
    """old * (1 - share) + new * (share * scale)"""
    if namespace(old) is np:
        share = float(share)
    return blockwise(
        lambda old, new: old * (1 - share) + new * (share * scale), old, new
    )


@step
def _over_batch(statistic: Any) -> Any:
    """(N, C, 1, ...) -> (C,): the mean over the batch"""
    return statistic.reshape(statistic.shape[:2]).mean(axis=0)
