"""PyTorch modules, and what Burnish writes when it sees their weights alone."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from burnish import Tensor, nn
from burnish.codegen.pipeline import Generated, generate, write
from tests.harness.imported import load_class
from tests.harness.ruff import lint_later


def saved(state: Mapping[str, torch.Tensor], path: Path) -> Path:
    """The state as a file of the kind that the path's ending says."""
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file({name: t.contiguous().clone() for name, t in state.items()}, path)
    else:
        torch.save(dict(state), path)
    return path


class Made:
    """The source of a weights file, imported: `model` holds its weights."""

    def __init__(self, path: Path, folder: Path):
        self.generated: Generated = generate(path)
        self.text = self.generated.text
        write(self.generated, folder)
        self.source = folder / f"{self.generated.name}.py"
        kind = load_class(self.source)
        self.model: nn.Module = kind.from_file(self.source.with_suffix(".safetensors"))

    def check(self, network: torch.nn.Module, skip: tuple[str, ...] = ()) -> None:
        """The network's layers and sizes; and what `check_values` does."""
        check_layers(network, self.model, skip)
        self.check_values(network)

    def check_values(self, network: torch.nn.Module) -> None:
        """Names and values are the network's, which takes what is saved."""
        lint_later(self.text)
        ours = {n: t.data for n, t in self.model.named_tensors(False)}
        for name, tensor in network.state_dict().items():
            np.testing.assert_array_equal(ours[name], tensor.numpy(), err_msg=name)
        back = self.source.with_suffix(".pt")
        self.model.save_file(back)
        state = torch.load(back, weights_only=True)
        network.load_state_dict(state, strict=True)

    def written(self, steps: Mapping[str, Any]) -> nn.Module:
        """The model with layers where the source has steps to write, by their place."""
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Unwritten):
                owner, _, last = name.rpartition(".")
                place = dict(self.model.named_modules())[owner]
                vars(place)[last] = steps[name]
        return self.model


def check_layers(
    network: torch.nn.Module, model: nn.Module, skip: tuple[str, ...] = ()
) -> None:
    """Every layer with weights of its own: its kind, and the sizes that both keep.

    skip: arguments that weights do not tell.
    """
    ours = dict(model.named_modules())
    for name, layer in network.named_modules():
        kind = type(layer).__name__
        if not layer.state_dict() or name not in ours or not hasattr(nn, kind):
            continue
        if kind in ("Module", "ModuleDict", "Sequential") or "former" in kind:
            continue
        own = ours[name]
        kinds = [base.__name__ for base in type(own).__mro__]
        assert kind in kinds, f"{name}: {kind}, got {kinds[0]}"
        given = inspect.signature(getattr(nn, kind)).parameters
        for argument in given:
            if argument in ("bias", "dtype", *skip) or not hasattr(layer, argument):
                continue
            theirs, mine = getattr(layer, argument), getattr(own, argument, None)
            if isinstance(theirs, bool | int | tuple) and mine is not None:
                assert np.array_equal(np.atleast_1d(theirs), _all(mine, theirs)), (
                    f"{name}.{argument}: {theirs}, got {mine}"
                )


def _all(mine: Any, theirs: Any) -> np.ndarray:
    """Ours, repeated for every axis where PyTorch keeps a number for each."""
    size = np.atleast_1d(theirs).shape
    return np.broadcast_to(np.atleast_1d(mine), size)


def same_numbers(network: torch.nn.Module, model: Any, x: np.ndarray) -> None:
    """Both give the same for x, the network in evaluation."""
    network.eval()
    with torch.no_grad():
        expected = network(torch.from_numpy(x)).numpy()
    found = model(Tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
