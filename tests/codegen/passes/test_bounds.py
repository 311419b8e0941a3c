"""A number that clips is no weight, unless an author has named it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.passes.forms import becomes, form


@pytest.mark.parametrize("kind", ["Max", "Min"])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("const_fold_opt__287", "-0.5"),
        ("onnx::Max_7", "-0.5"),
        ("clip.alpha", "self.alpha"),
    ],
)
def test_clipping_by_one_number(kind, name, written):
    held = name.replace("::", "_").replace(".", "_")
    text = f"""r = LeakyRelu<alpha=0.2>(x) m = {kind}(r, {held})
        s = LeakyRelu<alpha=0.2>(m) y = {kind}(s, {held})"""
    model = form(
        text, x="batch,3,4,4", weights={held: np.full((1, 1, 1, 1), -0.5, "f")}
    )
    for part in (*model.graph.initializer, *model.graph.node):
        if part.name == held:
            part.name = name
        for place, read in enumerate(getattr(part, "input", ())):
            if read == held:
                part.input[place] = name
    call = f"ops.{kind.lower()}imum"
    becomes(
        model,
        f"m = {call}(ops.leaky_relu(x, negative_slope=0.2), {written})",
        f"return {call}(ops.leaky_relu(m, negative_slope=0.2), {written})",
    )


@pytest.mark.parametrize(
    ("low", "high", "line"),
    [
        (-np.inf, 0.5, "return ops.clip(x, None, 0.5)"),
        (-0.5, np.inf, "return ops.clip(x, -0.5)"),
        (np.inf, 0.5, 'return ops.clip(x, float("inf"), 0.5)'),
        (-0.5, -np.inf, 'return ops.clip(x, -0.5, float("-inf"))'),
    ],
)
def test_an_infinite_bound_is_none_on_its_own_side(low, high, line):
    held = {"low": np.float32(low), "high": np.float32(high)}
    becomes(form("y = Clip(x, low, high)", x="2,3", weights=held), line)
