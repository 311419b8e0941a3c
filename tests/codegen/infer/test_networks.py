"""Weights of many networks: every layer is found again, with its sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from tests.harness.weights_only import Made, same_numbers, saved

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

UNKNOWN = ("stride", "padding", "dilation", "output_padding", "padding_idx")
"""What weights do not tell; the tests give it to the layers as it is by default."""


class BasicBlock(nn.Module):
    def __init__(self, ins: int, outs: int, groups: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, padding=1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(outs)
        if ins != outs:
            self.downsample = nn.Sequential(
                nn.Conv2d(ins, outs, 1, bias=False), nn.BatchNorm2d(outs)
            )


class ResNet(nn.Module):
    def __init__(self, groups: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        for i, (ins, outs) in enumerate([(16, 16), (16, 32), (32, 64)], 1):
            blocks = [BasicBlock(ins, outs, groups), BasicBlock(outs, outs, groups)]
            setattr(self, f"layer{i}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, 10)


def vgg() -> nn.Module:
    network = nn.Module()
    network.features = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )
    network.classifier = nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 10)
    )
    return network


class Inverted(nn.Module):
    def __init__(self, ins: int, outs: int, factor: int):
        super().__init__()
        wide = ins * factor
        first = [self.unit(ins, wide, 1)] if factor != 1 else []
        self.conv = nn.Sequential(
            *first,
            self.unit(wide, wide, 3, wide),
            nn.Conv2d(wide, outs, 1, bias=False),
            nn.BatchNorm2d(outs),
        )

    @staticmethod
    def unit(ins: int, outs: int, size: int, groups: int = 1) -> nn.Sequential:
        conv = nn.Conv2d(ins, outs, size, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outs), nn.ReLU6())


def mobilenet() -> nn.Module:
    network = nn.Module()
    network.features = nn.Sequential(
        Inverted.unit(3, 8, 3), Inverted(8, 4, 1), Inverted(4, 6, 6), Inverted(6, 6, 6)
    )
    network.classifier = nn.Sequential(nn.Dropout(), nn.Linear(6, 10))
    return network


class Double(nn.Module):
    def __init__(self, ins: int, outs: int):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(ins, outs, 3, bias=False),
            nn.BatchNorm2d(outs),
            nn.ReLU(),
            nn.Conv2d(outs, outs, 3, bias=False),
            nn.BatchNorm2d(outs),
            nn.ReLU(),
        )


class UNet(nn.Module):
    def __init__(self, bias: bool = True):
        super().__init__()
        self.inc = Double(3, 8)
        self.down1 = Double(8, 16)
        self.down2 = Double(16, 32)
        self.up1 = nn.ConvTranspose2d(32, 16, 2, bias=bias)
        self.conv_up1 = Double(32, 16)
        self.up2 = nn.ConvTranspose2d(16, 8, 2, bias=bias)
        self.conv_up2 = Double(16, 8)
        self.outc = nn.Conv2d(8, 2, 1)


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **options: Any):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.rnn = kind(12, 20, **options)
        width = (options.get("proj_size") or 20) * (1 + ("bidirectional" in options))
        self.fc = nn.Linear(width, 5)


class Parameters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 8))
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("position_ids", torch.arange(6)[None])
        self.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool))
        self.rows = nn.ParameterList([nn.Parameter(torch.ones(n)) for n in (2, 3)])
        self.named = nn.ParameterDict({"a-b": nn.Parameter(torch.ones(4))})
        self.heads = nn.ModuleDict({"3x3": nn.Linear(8, 2), "in": nn.Linear(8, 2)})
        self.act = nn.PReLU(8)
        self.group_norm = nn.GroupNorm(8, 8)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.layers[1].weight = self.layers[0].weight
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight


def convs(rank: int, transposed: bool = False) -> nn.Module:
    word = "ConvTranspose" if transposed else "Conv"
    kind = getattr(nn, f"{word}{rank}d")
    norm = getattr(nn, f"BatchNorm{rank}d")
    size = tuple(range(2, 2 + rank))
    return nn.Sequential(kind(3, 8, size), norm(8), nn.ReLU(), kind(8, 5, 3))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet": ResNet,
    "grouped": lambda: ResNet(groups=4),
    "vgg": vgg,
    "mobilenet": mobilenet,
    "unet": UNet,
    "unet without bias": lambda: UNet(bias=False),
    "lstm": lambda: Recurrent(nn.LSTM),
    "projected": lambda: Recurrent(nn.LSTM, proj_size=6, bias=False),
    "both ways": lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True),
    "gru": lambda: Recurrent(nn.GRU, num_layers=3),
    "rnn": lambda: Recurrent(nn.RNN, bidirectional=True),
    "cells": lambda: nn.ModuleDict({"a": nn.LSTMCell(3, 4), "b": nn.GRUCell(3, 4)}),
    "attention": lambda: nn.ModuleDict({"attn": nn.MultiheadAttention(64, 1)}),
    "other keys": lambda: nn.ModuleDict(
        {"attn": nn.MultiheadAttention(64, 1, kdim=5, vdim=6, bias=False)}
    ),
    "encoder": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(64, 1, 48), 3, enable_nested_tensor=False
    ),
    "transformer": lambda: nn.Transformer(64, 1, 2, 2, 48),
    "parameters": Parameters,
    "tied": Tied,
    "norms": lambda: nn.Sequential(
        nn.Linear(4, 8),
        nn.BatchNorm1d(8),
        nn.LayerNorm(8),
        nn.RMSNorm(8),
        nn.Linear(8, 6),
        nn.BatchNorm1d(6, affine=False),
    ),
    "instance": lambda: nn.ModuleDict(
        {"conv": nn.Conv2d(3, 8, 3), "in1": nn.InstanceNorm2d(8, affine=True)}
    ),
    "two axes": lambda: nn.ModuleDict({"norm": nn.LayerNorm((4, 5))}),
    "one layer": lambda: nn.Linear(3, 4),
    "double": lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).double(),
    **{f"conv{rank}d": lambda rank=rank: convs(rank) for rank in (1, 2, 3)},
    **{f"back{rank}d": lambda rank=rank: convs(rank, True) for rank in (1, 2, 3)},
}


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_is_found(name: str, ending: str, tmp_path: Path) -> None:
    network = NETWORKS[name]()
    state = network.state_dict()
    made = Made(saved(state, tmp_path / f"some.{ending}"), tmp_path / "out")
    made.check(network, UNKNOWN)


def test_a_chain_runs(tmp_path: Path) -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3, groups=4)
    )
    made = Made(saved(network.state_dict(), tmp_path / "some.pt"), tmp_path)
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 9)).astype(np.float32)
    same_numbers(network, made.model, x)


def test_a_gap_is_one_line(tmp_path: Path) -> None:
    from burnish import nn as ours

    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    made = Made(saved(network.state_dict(), tmp_path / "some.pt"), tmp_path)
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    same_numbers(network, made.written({"1": ours.ReLU()}), x)
    assert 'nn.Unwritten("1: (..., 8) -> (..., 8)")' in made.text
