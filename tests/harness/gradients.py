"""A generated module beside the PyTorch module that its file was exported from.

Parameters are matched by their values, so the PyTorch module's must all differ: see
`uneven`. Gradients are those of the same weighted sum of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

import burnish
from tests.harness.torch_exports import export

#: Of a parameter's largest gradient.
TOLERANCE = 1e-4
#: Of the largest of all: some are zero but for rounding (a key's bias in attention).
FLOOR = 1e-6


def uneven(network: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A network with no two parameters alike and no zeros, as after training."""
    torch.manual_seed(seed)
    model = network()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            middle = 1.0 if name.endswith("weight") else 0.0
            nn.init.normal_(parameter, middle, 0.1)
        else:  # layers that were copied from one another
            with torch.no_grad():
                parameter += 0.02 * torch.randn_like(parameter)
    return model


def exported(
    model: nn.Module,
    inputs: Mapping[str, Tensor],
    *,
    dynamo: bool = False,
    opset: int = 18,
    axes: Sequence[str] = ("batch",),
) -> onnx.ModelProto:
    """An ONNX model by either of PyTorch's exporters.

    inputs: by the names that the model's forward has; axes: those that are open.
    """
    model.eval()
    how: dict[str, Any] = {"input_names": list(inputs), "opset_version": opset}
    if dynamo:
        dims = {axis: torch.export.Dim(name) for axis, name in enumerate(axes)}
        how |= {"dynamo": True, "kwargs": dict(inputs), "external_data": False}
        how |= {"dynamic_shapes": dict.fromkeys(inputs, dims), "verbose": False}
    else:
        dynamic = {name: dict(enumerate(axes)) for name in inputs}
        how |= {"dynamo": False, "dynamic_axes": dynamic}
        training = torch.onnx.TrainingMode.PRESERVE
        how |= {"training": training, "do_constant_folding": False}
    given = () if dynamo else tuple(inputs.values())
    with TemporaryDirectory() as folder:
        return onnx.load(export(model, given, Path(folder) / "model.onnx", **how))


def disagreement(
    original: nn.Module,
    model: Any,
    inputs: Mapping[str, Tensor],
    *,
    training: bool = False,
) -> dict[str, float]:
    """How far apart the gradients are, in tolerances: agreement is up to 1.

    By the original's names; "output" is the output's own. The original is moved
    to double precision first, so that only one side rounds.
    """
    pairs = matched(original, model)
    torch.manual_seed(2)
    original.double().train(training)
    doubled = [x.double() if x.is_floating_point() else x for x in inputs.values()]
    expected = _output(original(**dict(zip(inputs, doubled, strict=True))))
    weights = torch.randn(expected.shape, dtype=torch.float64)
    original.zero_grad()
    (expected * weights).sum().backward()

    model.to("cpu:autodiff")
    if not training:
        _still(model)
    found = _output(model(*(x.numpy() for x in inputs.values())))
    loss = (found * weights.float().numpy()).sum()
    gradients = loss.backward()

    scale = max(float(p.grad.abs().max()) for p in original.parameters())
    result = {"output": _apart(found.detach().numpy(), expected.detach().numpy(), 0.0)}
    for name, wanted in original.named_parameters():
        gradient = np.zeros(wanted.shape)
        for parameter, transposed in pairs[name]:
            mine = parameter.grad(gradients).numpy()
            gradient += (mine.T if transposed else mine).reshape(wanted.shape)
        result[name] = _apart(gradient, wanted.grad.numpy(), scale)
    return result


def matched(original: nn.Module, model: Any) -> dict[str, list[tuple[Any, bool]]]:
    """For each of the original's parameters the imported, and whether turned round.

    There are several where an exporter wrote a shared one twice, as it is and turned.
    Buffers of the original that were imported as parameters are left out.
    """
    theirs = {name: p.detach().numpy() for name, p in original.named_parameters()}
    buffers = [buffer.numpy() for buffer in original.buffers()]
    pairs: dict[str, list[tuple[Any, bool]]] = {name: [] for name in theirs}
    for path, parameter in model.named_parameters():
        mine = parameter.numpy()
        for name, value in theirs.items():
            if _same(value, mine):
                pairs[name].append((parameter, False))
                break
            if value.ndim == 2 and _same(value.T, mine):
                pairs[name].append((parameter, True))
                break
        else:
            known = any(_same(buffer, mine) for buffer in buffers)
            assert known, f"{path} {mine.shape} is no parameter of the original"
    lost = [name for name, found in pairs.items() if not found]
    assert not lost, f"not imported: {lost}"
    return pairs


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.size == other.size and np.array_equal(one.ravel(), other.ravel())


def _still(model: Any) -> None:
    """Training, but as it predicts: no dropout, no batch statistics."""
    for _, module in model.named_modules():
        if isinstance(module, burnish.nn.Dropout):
            module.p = 0.0


def _output(value: Any) -> Any:
    if isinstance(value, dict):
        value = next(iter(value.values()))
    return value[0] if isinstance(value, tuple | list) else value


def _apart(mine: np.ndarray, theirs: np.ndarray, scale: float) -> float:
    allowed = TOLERANCE * np.abs(theirs).max() + FLOOR * scale
    return float(np.abs(mine - theirs).max() / allowed)
