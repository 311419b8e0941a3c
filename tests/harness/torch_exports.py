"""ONNX files as PyTorch's two exporters write them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.onnx._internal.exporter._registration import ONNXRegistry

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
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    names = list(inspect.signature(model.forward).parameters)[: len(inputs)]
    dynamic = dict(zip(names, axes or [EVERY] * len(inputs), strict=True))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if dynamo:
            of = {
                name: dict.fromkeys(held, torch.export.Dim.DYNAMIC)
                for name, held in dynamic.items()
            }
            given: dict[str, Any] = {"dynamo": True, "dynamic_shapes": of}
        else:
            given = {"dynamo": False, "input_names": names, "dynamic_axes": dynamic}
        torch.onnx.export(model, tuple(inputs), path, **given, **options)
    return path
