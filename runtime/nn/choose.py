"""Layers chosen by name, as a configuration file has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burnish.errors import InputError
from burnish.nn.activations.piecewise import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Shrink,
    Softshrink,
    Threshold,
    ThresholdedReLU,
)
from burnish.nn.activations.probabilities import LogSoftmax, Softmax, Softmax2d, Softmin
from burnish.nn.activations.smooth import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    LogSigmoid,
    Mish,
    Sigmoid,
    SiLU,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from burnish.nn.basic import Identity
from burnish.nn.core.module import Module
from burnish.nn.norms import batch_norm, layer_norm


def activation(kind: str | Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`activation("leaky_relu", negative_slope=0.2)`: the layer of that name

    Names are those of the layers, without regard to case and underscores. What can be
    called is handed back as it is. Raises InputError for an unknown name.
    """
    if not isinstance(kind, str):
        if not callable(kind):
            raise InputError(
                f"activation: expected a name or something to call, "
                f"got a {type(kind).__name__}"
            )
        return kind
    return _chosen("activation", _ACTIVATIONS, kind)(**options)


def normalization(kind: str, num_features: int, **options: Any) -> Module:
    """`normalization("group", 32, num_groups=8)`: a layer for that many channels

    kind: "batch1d" to "batch3d", "instance1d" to "instance3d", "group", "layer", "rms"
    or "identity". Raises InputError for another.
    """
    layer = _chosen("normalization", _NORMALIZATIONS, kind)
    if layer is Identity:
        return Identity()
    if layer is layer_norm.GroupNorm:
        return layer_norm.GroupNorm(num_channels=num_features, **options)
    made: Module = layer(num_features, **options)
    return made


def _chosen(where: str, table: dict[str, Any], kind: str) -> Any:
    found = table.get(kind.lower().replace("_", ""))
    if found is None:
        raise InputError(f"{where}: expected one of {sorted(table)}, got {kind!r}")
    return found


_ACTIVATIONS = {
    "celu": CELU,
    "elu": ELU,
    "gelu": GELU,
    "glu": GLU,
    "hardshrink": Hardshrink,
    "hardsigmoid": Hardsigmoid,
    "hardswish": Hardswish,
    "hardtanh": Hardtanh,
    "leakyrelu": LeakyReLU,
    "logsigmoid": LogSigmoid,
    "logsoftmax": LogSoftmax,
    "mish": Mish,
    "prelu": PReLU,
    "relu": ReLU,
    "relu6": ReLU6,
    "rrelu": RReLU,
    "selu": SELU,
    "shrink": Shrink,
    "sigmoid": Sigmoid,
    "silu": SiLU,
    "softmax": Softmax,
    "softmax2d": Softmax2d,
    "softmin": Softmin,
    "softplus": Softplus,
    "softshrink": Softshrink,
    "softsign": Softsign,
    "tanh": Tanh,
    "tanhshrink": Tanhshrink,
    "threshold": Threshold,
    "thresholdedrelu": ThresholdedReLU,
}
_NORMALIZATIONS = {
    "batch1d": batch_norm.BatchNorm1d,
    "batch2d": batch_norm.BatchNorm2d,
    "batch3d": batch_norm.BatchNorm3d,
    "group": layer_norm.GroupNorm,
    "identity": Identity,
    "instance1d": batch_norm.InstanceNorm1d,
    "instance2d": batch_norm.InstanceNorm2d,
    "instance3d": batch_norm.InstanceNorm3d,
    "layer": layer_norm.LayerNorm,
    "rms": layer_norm.RMSNorm,
}
