"""Rows that products read: plain or in blocks, by the ways of the first-level cache."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.plan.cpu.builder import Builder
from burnish.plan.cpu.layout import LANES
from burnish.plan.cpu.products import first_level
from tests.runtime.plan.checks import check

RANDOM = np.random.default_rng(7)
FEW, MANY = 8, 12


def draw(*shape):
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def cache_of(folder, kind, ways, level=1):
    folder.mkdir()
    facts = {"level": level, "type": kind, "ways_of_associativity": ways}
    for name, fact in facts.items():
        (folder / name).write_text(f"{fact}\n")


def labels(fast, *args):
    """Those of the copies of a plan."""
    return [step.label for step in fast.planned(*args).steps if step.kind == "copy"]


def test_ways_are_those_of_the_first_level_for_data(tmp_path):
    cache_of(tmp_path / "index0", "Instruction", 8)
    cache_of(tmp_path / "index1", "Data", 12)
    cache_of(tmp_path / "index2", "Unified", 16, level=2)
    assert first_level.ways(tmp_path) == 12


def test_ways_are_unknown_without_a_description(tmp_path):
    assert first_level.ways(tmp_path) == 0
    cache_of(tmp_path / "index0", "Data", "")
    assert first_level.ways(tmp_path / "none") == 0
    first_level.ways.cache_clear()
    assert first_level.ways(tmp_path) == 0


def planned_for(monkeypatch, ways, has_row_tiles=False):
    monkeypatch.setattr(first_level, "ways", lambda: ways)
    monkeypatch.setattr(Builder, "has_row_tiles", has_row_tiles)


@pytest.mark.parametrize(
    ("ways", "has_row_tiles", "rows", "is_brought"),
    [
        (0, False, 64, True),
        (FEW, False, 130, True),
        (FEW, True, 130, False),
        (MANY, False, 130, False),
        (MANY, False, 64, False),
    ],
)
@pytest.mark.usefixtures("canaries")
def test_rows_are_brought_into_blocks_for_few_ways(
    ways, has_row_tiles, rows, is_brought, monkeypatch
):
    planned_for(monkeypatch, ways, has_row_tiles)
    layer, x = nn.Linear(256, 50), draw(rows, 256)
    fast = check(layer, x)
    assert labels(fast, x) == ["plain to blocked"] * is_brought


@pytest.mark.parametrize(
    ("ways", "has_row_tiles", "rows", "wide", "is_blocked"),
    [
        (FEW, False, 64, 256, True),
        (FEW, True, 192, 256, False),
        (MANY, False, 191, 256, False),
        (MANY, False, 192, 256, True),
        (MANY, False, 192, 1536, True),
        (MANY, False, 192, 1792, False),
        (MANY, False, 192, 272, False),
    ],
)
def test_blocks_of_a_product_for_many_ways_stay_in_the_second_level(
    ways, has_row_tiles, rows, wide, is_blocked, monkeypatch
):
    planned_for(monkeypatch, ways, has_row_tiles)
    fast = check(
        nn.Sequential(nn.Linear(16, wide), nn.Linear(wide, 16)), draw(rows, 16)
    )
    steps = fast.planned(draw(rows, 16)).steps
    written = [step.fields["out_step"] for step in steps if step.kind == "conv"]
    assert written == [LANES * rows if is_blocked else LANES, LANES]


@pytest.mark.parametrize("wide", [256, 272, 512])
@pytest.mark.parametrize("rows", [64, 128, 195])
def test_both_layouts_give_the_same_bits(rows, wide, monkeypatch):
    layers = nn.Linear(32, wide), nn.Linear(wide, 48)
    x, found = draw(rows, 32), []

    def function(x):
        return layers[1](ops.gelu(layers[0](x)))

    for given in ((FEW, False), (FEW, True), (MANY, False)):
        planned_for(monkeypatch, *given)
        found.append(check(function, x)(x).data.tobytes())
    assert found[0] == found[1] == found[2]


def test_a_gradient_of_a_weight_reads_blocks_on_any_cache(monkeypatch):
    layer = nn.Linear(256, 512).to("cpu:autodiff")
    x, factor = draw(130, 256), draw(130, 512)
    found, gradients, convert = {FEW: [], MANY: []}, [], Builder._convert

    def noted(b, shape, source, one, target, other):
        found[first_level.ways()].append((shape, one.kind, other.kind))
        convert(b, shape, source, one, target, other)

    monkeypatch.setattr(Builder, "_convert", noted)

    def step(x, factor):
        given = (layer(x) * factor).sum().backward()
        optim.SGD().step(0.0, layer, given)
        return layer.weight.grad(given)

    for ways in (FEW, MANY):
        planned_for(monkeypatch, ways)
        fast = burnish.compile(step)
        fast(x, factor)  # which is eager
        gradients.append(fast(x, factor).numpy().tobytes())
    assert gradients[0] == gradients[1]
    brought = [(shape, "plain", "blocked") for shape in ((130, 256), (130, 512))]
    assert found == {FEW: brought, MANY: brought}
