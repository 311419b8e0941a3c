"""Files of older opsets read as newer ones: bounds, ends and axes are inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.codegen.passes.forms import becomes, form, stays

SIX = {"three": np.float32(3), "six": np.float32(6)}
SWISH = """a = Add(x, three) b = Clip<min=0.0, max={most}>(a) c = Mul(x, b)
    y = Div(c, six)"""

FORMS: dict[str, tuple[onnx.ModelProto, str]] = {
    "a clip's bounds": (
        form(SWISH.format(most="6.0"), opset=9, weights=SIX, x="2,3"),
        "ops.hard_swish(x)",
    ),
    "the upper bound alone": (
        form("y = Clip<max=0.5>(x)", opset=7, x="2,3"),
        "ops.clip(x, None, 0.5)",
    ),
    "a bound that halves hold": (
        form(
            "h = Cast<to=10>(x) c = Clip<min=-0.1>(h) y = Cast<to=1>(c)",
            opset=9,
            x="2,3",
        ),
        "ops.clip(",
    ),
    "ends without axes": (
        form("y = Slice<starts=[1], ends=[9]>(x)", opset=9, x="2,3"),
        "x[1:]",
    ),
    "ends and axes": (
        form("y = Slice<starts=[0], ends=[-1], axes=[1]>(x)", opset=9, x="2,3"),
        "x[:, :-1]",
    ),
    "pads and their value": (
        form("y = Pad<pads=[0, 1, 0, 0], value=2.0>(x)", opset=10, x="2,3"),
        "ops.pad(",
    ),
    "sizes of parts": (
        form("a, b = Split<axis=1, split=[1, 2]>(x) y = Mul(a, b)", opset=11, x="2,3"),
        "ops.split(",
    ),
    "added axes": (
        form("a = Unsqueeze<axes=[1]>(x) y = Squeeze<axes=[1]>(a)", opset=12, x="2,3"),
        "return x",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_older_forms_are_known(name: str) -> None:
    model, line = FORMS[name]
    assert line in becomes(model)


def test_other_bounds_are_no_activation() -> None:
    stays(form(SWISH.format(most="5.0"), opset=9, weights=SIX, x="2,3"), "hard_swish")


def test_all_axes_of_size_one_are_dropped() -> None:
    model = form("a = Squeeze(x) y = Relu(a)", opset=11, x="2,1,3,1")
    assert "squeeze" in becomes(model)
