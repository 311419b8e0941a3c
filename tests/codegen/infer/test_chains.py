"""Random chains of layers: their weights alone give the chain, with its numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch

from burnish import nn as ours
from tests.harness.examples import examples
from tests.harness.weights_only import Made, same_numbers, saved

pytestmark = pytest.mark.oracle

PLAIN = ("Linear", "LayerNorm", "ReLU", "Tanh", "BatchNorm1d")
IMAGES = ("Conv2d", "BatchNorm2d", "ReLU", "Tanh", "Depthwise")
WIDTHS = st.integers(5, 12)


@st.composite
def chains(draw: st.DrawFn) -> tuple[torch.nn.Sequential, bool]:
    """Layers whose features fit, the first and the last with weights."""
    images = draw(st.booleans())
    words = draw(st.lists(st.sampled_from(IMAGES if images else PLAIN), max_size=6))
    width = draw(WIDTHS)
    kinds = ["Conv2d" if images else "Linear", *words]
    layers: list[torch.nn.Module] = []
    before = width
    for kind in [*kinds, kinds[0]]:
        if kind in ("Linear", "Conv2d"):
            after = draw(WIDTHS)
            sizes = (before, after, 3) if kind == "Conv2d" else (before, after)
            layers.append(getattr(torch.nn, kind)(*sizes))
            before = after
        elif kind == "Depthwise":
            layers.append(torch.nn.Conv2d(before, before, 3, groups=before))
        elif kind in ("ReLU", "Tanh"):
            layers.append(getattr(torch.nn, kind)())
        else:
            layers.append(getattr(torch.nn, kind)(before))
    return torch.nn.Sequential(*layers), images


@settings(max_examples=examples(40), deadline=None)
@given(chains())
def test_a_chain_of_any_layers(chain: tuple[torch.nn.Sequential, bool]) -> None:
    network, images = chain
    for module in network.modules():
        if hasattr(module, "running_var"):
            module.running_var.uniform_(0.5, 2)
    without = {
        str(n): getattr(ours, type(layer).__name__)()
        for n, layer in enumerate(network)
        if not layer.state_dict()
    }
    with tempfile.TemporaryDirectory() as folder:
        path = saved(network.state_dict(), Path(folder) / "some.pt")
        made = Made(path, Path(folder) / "out")
        made.check(network)
        first = next(iter(network.state_dict().values())).shape[1]
        size = (2, first, 25, 25) if images else (2, first)
        x = np.random.default_rng(0).normal(size=size).astype(np.float32)
        same_numbers(network, made.written(without), x)
