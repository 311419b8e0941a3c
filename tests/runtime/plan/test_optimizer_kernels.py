"""Kernels of optimizers: programs of formulas, and the norms that limit gradients."""

import numpy as np
import pytest

from burnish.kernels import direct
from burnish.kernels.records import POWERS
from burnish.optim.rules.formula import traced

from .test_updates_formulas import RULES


@pytest.mark.parametrize("count", [1, 7, 255, 256, 257, 1000, 5003])
@pytest.mark.parametrize("name", RULES)
def test_programs_are_their_formulas(name, count):
    rule, rng = RULES[name], np.random.default_rng(count)
    weight = rng.normal(size=count)
    state = {slot: np.zeros(count) for slot in rule.slots()}
    single = weight.astype(np.float32)
    slots = {f"s{i}": np.zeros(count, np.float32) for i in range(len(state))}
    for step in range(1, 9):
        grad = rng.normal(size=count).astype(np.float32)
        limited = np.clip(grad * np.float32(-0.75), -0.5, 0.5).astype(np.float64)
        new = np.empty(count)
        rule.write(new, weight, limited, state | {"step": step}, 0.01)
        weight = new
        trace = traced(rule.write, rule.slots(), step, 0.01)
        assert trace is not None
        fields = {"weight": single, "out": single, "grad": grad, "count": count}
        fields |= {"factor": np.float32([0.75]), "bound": 0.5, "maximize": 1}
        direct.launch("formula", 3, **trace.fields, **slots, **fields)
        np.testing.assert_allclose(single, weight, rtol=1e-4, atol=1e-5)
    for slot, array in zip(state.values(), slots.values(), strict=True):
        np.testing.assert_allclose(array, slot, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, float("inf")])
@pytest.mark.parametrize("count", [1, 7, 31, 4095, 4096, 4097, 10_007])
def test_norms_are_those_of_float64(count, p):
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)
    blocks = -(-count // POWERS["block"])
    sums, factor = np.full(blocks + 1, -1.0), np.full(2, -1, np.float32)
    direct.launch("powers", 3, x=x, out=sums, count=count, p=p)
    assert sums[blocks] == -1
    each = {"p": p, "limit": 0.5, "epsilon": 1e-6}
    direct.launch("clip_factor", 1, x=sums, out=factor, count=blocks, **each)
    norm = np.linalg.norm(x.astype(np.float64), p)
    wanted = np.float32(min(0.5 / (norm + 1e-6), 1))
    np.testing.assert_allclose(factor, [wanted, -1], rtol=2e-7)
