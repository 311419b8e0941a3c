"""ONNX files as PyTorch's two exporters write them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import logging
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import torch
from torch.onnx._internal.exporter._registration import ONNXRegistry

from tests.harness.kept import kept

EVERY = {0: "batch"}

# The newer exporter reads the signatures of its 500 functions anew for every export.
ONNXRegistry.from_torchlib = staticmethod(functools.cache(ONNXRegistry.from_torchlib))


def exported(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    path: Path,
    dynamo: bool,
    axes: Sequence[Mapping[int, str]] = (),
    **options: Any,
) -> Path:
    """The file, quietly; axes: those of each input that are dynamic, else the first.

    options: further options of the exporter.
    """
    names = list(inspect.signature(model.forward).parameters)[: len(inputs)]
    dynamic = dict(zip(names, axes or [EVERY] * len(inputs), strict=True))
    if dynamo:
        of = {
            name: dict.fromkeys(held, torch.export.Dim.DYNAMIC)
            for name, held in dynamic.items()
        }
        given: dict[str, Any] = {"dynamo": True, "dynamic_shapes": of}
    else:
        given = {"dynamo": False, "input_names": names, "dynamic_axes": dynamic}
    return export(model, tuple(inputs), path, **given, **options)


def export(
    model: torch.nn.Module, inputs: tuple[Any, ...], path: Path, **options: Any
) -> Path:
    """`torch.onnx.export` to a file, quietly, once for equal networks and options."""
    of = model, inputs, options, torch.get_default_dtype(), _versions()
    return kept(of, path, lambda: _export(model, inputs, path, options))


def _export(
    model: torch.nn.Module, inputs: tuple[Any, ...], path: Path, options: dict[str, Any]
) -> bool:
    """Export; whether this left the model as it was."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    before = [tensor._version for tensor in model.state_dict().values()]
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        torch.random.fork_rng(devices=[]),
    ):
        warnings.simplefilter("ignore")
        torch.onnx.export(model, inputs, path, **options)
    logger.setLevel(level)
    return before == [tensor._version for tensor in model.state_dict().values()]


@functools.cache
def _versions() -> list[str]:
    """Of all that is installed: a network may call any of it."""
    return [
        sys.version,
        *sorted(f"{each.name} {each.version}" for each in distributions()),
    ]
