"""Make inputs for a generated module from its `@nn.accepts` decorator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
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
    """An array for each input that the model cannot do without, and for those given.

    Those given fix the sizes of the dimensions they have.
    """
    specs = _specs(model)
    parameters = inspect.signature(model.forward).parameters
    refuse_unknown(files, list(parameters), spelled("inputs", "--input"))
    refuse_unknown(dims, list(open_sizes(model, {}, 1)), spelled("dims", "--dim"))
    given = {name: load(name, file) for name, file in files.items()}
    sizes = open_sizes(model, {**held_sizes(model, given), **dims}, open_size)
    random, made = np.random.default_rng(0), {}
    for name, parameter in parameters.items():
        if name in given:
            made[name] = given[name]
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


def known(
    model: nn.Module, dims: Mapping[str, int], files: Mapping[str, Path]
) -> tuple[dict[str, int], dict[str, Path]]:
    """Of sizes and inputs those that the model has."""
    axes, parameters = open_sizes(model, {}, 1), inspect.signature(model.forward)
    return (
        {name: size for name, size in dims.items() if name in axes},
        {name: file for name, file in files.items() if name in parameters.parameters},
    )


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


def held_sizes(model: nn.Module, given: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The size that each named dimension has in the inputs."""
    found: dict[str, int] = {}
    for name, array in given.items():
        for axis, word in _named_axes(model, name, array):
            found.setdefault(word, array.shape[axis])
    return found


def resized(
    model: nn.Module, given: Mapping[str, np.ndarray], dimension: str, size: int
) -> dict[str, np.ndarray]:
    """The inputs with another size of one dimension, repeated or cut."""
    made = dict(given)
    for name, array in given.items():
        for axis, word in _named_axes(model, name, array):
            if word == dimension:
                places = np.arange(size) % array.shape[axis]
                made[name] = made[name].take(places, axis=axis)
    return made


def _named_axes(
    model: nn.Module, name: str, array: np.ndarray
) -> Iterator[tuple[int, str]]:
    """The axes of an input that `@nn.accepts` has names for."""
    spec = _specs(model).get(name)
    if spec is None:
        return
    tail = spec.tail or ()
    axes = [*enumerate(spec.head), *enumerate(tail, array.ndim - len(tail))]
    for axis, word in axes:
        if isinstance(word, str) and 0 <= axis < array.ndim:
            yield axis, word


def _specs(model: nn.Module) -> dict[str, Spec]:
    found: dict[str, Spec] = getattr(type(model).forward, "inputs", {})
    return found


def counts_a_batch(axis: str) -> bool:
    """Whether a dimension of this name is the number of examples."""
    return axis == "N" or "batch" in axis.lower()
