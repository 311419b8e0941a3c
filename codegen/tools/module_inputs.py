"""Make inputs for a generated module, from what its `@nn.accepts` says of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from burnish import nn
from burnish.codegen.errors import UsageError, spelled
from burnish.codegen.feeds import load, refuse_unknown
from burnish.nn.accepts import Spec

SIZES = (64, 224, 8)
"""Of open dimensions that count no batch: the first with which the model runs."""


def arrays(
    model: nn.Module,
    files: Mapping[str, Path],
    dims: Mapping[str, int],
    open_size: int,
) -> dict[str, np.ndarray]:
    """An array for each input that the model cannot do without, and for those given."""
    specs = _specs(model)
    parameters = inspect.signature(model.forward).parameters
    refuse_unknown(files, list(parameters), spelled("inputs", "--input"))
    refuse_unknown(dims, list(open_sizes(model, {}, 1)), spelled("dims", "--dim"))
    sizes, random = open_sizes(model, dims, open_size), np.random.default_rng(0)
    made = {}
    for name, parameter in parameters.items():
        if name in files:
            made[name] = load(name, files[name])
        elif parameter.default is parameter.empty:
            if parameter.kind is parameter.VAR_POSITIONAL or name not in specs:
                raise UsageError(
                    f"{type(model).__name__}: expected @nn.accepts to say what "
                    f"{name!r} is; give it with "
                    f"{spelled('inputs={name: path}', '--input NAME=FILE.npy')}"
                )
            made[name] = _random(name, specs[name], sizes, open_size, random)
    return made


def _random(
    name: str,
    spec: Spec,
    sizes: Mapping[str, int],
    open_size: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Normal numbers; of ids 0 and 1, which every table has; of a mask ones."""
    shape = [
        axis if isinstance(axis, int) else sizes.get(axis or "", open_size)
        for axis in (*spec.head, *(spec.tail or ()))
    ]
    dtype = spec.dtype or np.dtype(np.float32)
    if "mask" in name.lower():
        return np.ones(shape, dtype)
    if dtype.kind in "iub":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind not in "f":
        raise UsageError(
            f"{name}: expected numbers, got {spec.text}; give it with "
            f"{spelled('inputs={name: path}', '--input NAME=FILE.npy')}"
        )
    return np.asarray(random.standard_normal(shape)).astype(dtype)


def open_sizes(
    model: nn.Module, dims: Mapping[str, int], open_size: int
) -> dict[str, int]:
    """The size of each named dimension, as `arrays` has it."""
    axes = [
        axis
        for spec in _specs(model).values()
        for axis in spec.head + (spec.tail or ())
    ]
    return {
        axis: dims.get(axis, 1 if counts_a_batch(axis) else open_size)
        for axis in axes
        if isinstance(axis, str)
    }


def _specs(model: nn.Module) -> dict[str, Spec]:
    found: dict[str, Spec] = getattr(type(model).forward, "inputs", {})
    return found


def counts_a_batch(axis: str) -> bool:
    """Whether a dimension of this name is the number of examples."""
    return axis == "N" or "batch" in axis.lower()


def described(array: np.ndarray) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"
