"""What comes out of sorted names fits together: kinds and order by sizes that chain."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from burnish import nn as ours
from tests.harness.weights_only import Made, saved

pytestmark = pytest.mark.oracle


def conv(ins: int, outs: int, **more: Any) -> nn.Module:
    return nn.Conv2d(ins, outs, 3, bias=False, **more)


def back(ins: int, outs: int) -> nn.Module:
    return nn.ConvTranspose2d(ins, outs, 2, bias=False)


class Of(nn.Module):
    """A module with these attributes, in this order."""

    def __init__(self, **parts: nn.Module):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


NETWORKS = {
    "norms before layers in the alphabet": lambda: Of(
        stem=conv(3, 16),
        bn=nn.BatchNorm2d(16),
        body=conv(16, 32),
        after=nn.BatchNorm2d(32),
        head=nn.Linear(32, 10),
    ),
    "names that say nothing": lambda: Of(
        q=conv(3, 16),
        an=nn.BatchNorm2d(16),
        z=conv(16, 32),
        b=nn.BatchNorm2d(32),
        c=conv(32, 64),
        a=nn.BatchNorm2d(64),
    ),
    "generator": lambda: Of(
        project=nn.Linear(16, 64),
        g1=back(64, 32),
        bn1=nn.BatchNorm2d(32),
        g2=back(32, 16),
        bn2=nn.BatchNorm2d(16),
        out=back(16, 3),
    ),
    "autoencoder": lambda: Of(
        encoder=nn.Sequential(conv(3, 16), nn.BatchNorm2d(16), conv(16, 32)),
        decoder=nn.Sequential(back(32, 16), nn.BatchNorm2d(16), back(16, 3)),
    ),
    "depthwise": lambda: Of(
        dw=conv(16, 16, groups=16),
        bn_dw=nn.BatchNorm2d(16),
        pw=conv(16, 32),
        bn_pw=nn.BatchNorm2d(32),
    ),
}


def widths(module: Any) -> tuple[int, int] | None:
    """The input and output size of one of our layers."""
    if isinstance(module, ours.ConvTranspose2d):
        return module.weight.shape[0], module.weight.shape[1] * module.groups
    if isinstance(module, ours.Conv2d):
        return module.weight.shape[1] * module.groups, module.weight.shape[0]
    if isinstance(module, ours.Linear):
        return module.weight.shape[1], module.weight.shape[0]
    if isinstance(module, ours.BatchNorm2d):
        return module.weight.shape * 2
    return None


def check_chain(model: Any) -> None:
    """Every layer takes what the one before it gives."""
    found = [
        (path, width)
        for path, module in model.named_modules()
        if (width := widths(module)) is not None
    ]
    for (before, (_, gives)), (after, (takes, _)) in itertools.pairwise(found):
        assert gives == takes, f"{before} gives {gives}, {after} takes {takes}"


@pytest.mark.parametrize("name", NETWORKS)
def test_kinds_and_order(tmp_path: Path, name: str) -> None:
    network = NETWORKS[name]()
    path = saved(network.state_dict(), tmp_path / "some.safetensors")
    made = Made(path, tmp_path / "out")
    made.check(network)
    check_chain(made.model)


def test_types_sort_before_names(tmp_path: Path) -> None:
    """Counters of batches come first in the file, and tell of no order."""
    network = Of(a=nn.BatchNorm2d(4), conv=conv(3, 4))
    state = {k: torch.as_tensor(v) for k, v in network.state_dict().items()}
    made = Made(saved(state, tmp_path / "some.safetensors"), tmp_path / "out")
    assert made.text.index("self.conv =") < made.text.index("self.a =")
