"""`export` of modules with `if` on tensors: ONNX's If, both ways as they run here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish import Tensor, nn, ops
from burnish.codegen import Options, export, generate
from burnish.codegen.errors import ExportError
from tests.harness.exported import ran


class Two(nn.Module):
    """A function with two layers."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def chosen(m: Two, x: Tensor) -> Any:
    if x.sum() > 0:  # noqa: SIM108  # the form under test
        y = m.a(x)
    else:
        y = m.b(x) * 2
    return ops.relu(y)


def nested(m: Two, x: Tensor) -> Any:
    y = x
    if x.max() > 1:  # noqa: SIM108
        y = m.a(y) if x.min() < -1 else y + 1
    else:
        y = y * 3
    z = y + 1
    if z.sum() > 4:
        z = z - 1
    return z, y


def early(m: Two, x: Tensor) -> Any:
    if x.sum() > 0:
        return x
    return m.b(x)


def both(m: Two, x: Tensor) -> Any:
    if x.sum() > 0 and x.max() > 1:
        x = m.a(x)
    return x.mean(1)


def of_layers(m: Two, x: Tensor) -> Any:
    """The layer is chosen: the same line calls one or the other."""
    layer = m.a if x.sum() > 0 else m.b
    return layer(x) + 1


def of_constants(m: Two, x: Tensor) -> Any:
    by = Tensor([1.0, 2.0, 3.0, 4.0]) if x.sum() > 0 else Tensor([5.0, 6.0, 7.0, 8.0])
    return x * by, by


def of_python(m: Two, x: Tensor) -> Any:
    """What differs is a number of Python."""
    by = 2 if x.sum() > 0 else 3
    return x * by + 1


def lengths(m: Two, x: Tensor) -> Any:
    """The ways give other shapes, and what follows works with them."""
    y = ops.concat([x, x], axis=1) if x.sum() > 0 else x
    return y + 1


def swapped(m: Two, x: Tensor) -> Any:
    p, q = x + 1, x - 1
    if x.sum() > 0:
        p, q = q, p
    return p * 2, q


def in_a_row(m: Two, x: Tensor) -> Any:
    for i in range(3):
        x = m.a(x) if x.max() > i else m.b(x)
    return x


def for_nothing(m: Two, x: Tensor) -> Any:
    if x.sum() > 0:
        pass
    return x * 2


def numbers(m: Two, x: Tensor) -> Any:
    if (x > 0).sum():  # any number is a condition
        x = x + 1
    return x


FUNCTIONS = (
    chosen, nested, early, both, of_layers, of_constants, of_python, lengths, swapped,
    in_a_row, for_nothing, numbers,
)  # fmt: skip


def drawn(rows: int, seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed).standard_normal((rows, 4))
    return (draws * (seed + 1) / 2).astype(np.float32)


def outputs(results: Any) -> Sequence[Any]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(
    ("dynamic", "functions"),
    [(None, False), ({"x": {0: "batch"}}, False), (None, True)],
    ids=["fixed", "any", "functions"],
)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_way_gives_what_the_module_gives(
    function: Any, dynamic: Any, functions: bool
) -> None:
    module = nn.Sequential(Two(function)) if functions else Two(function)
    made = export(
        module, np.ones((2, 4), np.float32), dynamic=dynamic, functions=functions
    )
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
    for seed, sign in ((0, 0), (1, 0), (2, 0), (3, 9), (4, -1)):
        x = drawn(2 if dynamic is None else seed + 1, seed)
        x = sign * abs(x) if sign else x
        for found, expected in zip(
            ran(made, x), outputs(module(Tensor(x))), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_the_source_comes_back(tmp_path: Path) -> None:
    export(Two(chosen), drawn(2, 0)).save(tmp_path / "two.onnx")
    text = generate(tmp_path / "two.onnx", Options()).text
    assert (
        "        y = self.a(x) if x.sum() > 0.0 else self.b(x) * 2.0\n"
        "        return ops.relu(y)\n"
    ) in text


def test_what_no_way_asks_for_is_no_condition() -> None:
    model = onnx.load_from_string(export(Two(for_nothing), drawn(2, 0)).to_bytes())
    assert "If" not in {node.op_type for node in model.graph.node}


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=4))
def test_ifs_in_a_row_and_within_each_other(steps: list[tuple[int, int]]) -> None:
    def random(m: Two, x: Tensor) -> Any:
        y = x
        for kind, limit in steps:
            if x.sum() > limit:
                if kind == 1:
                    y = y + limit
                elif kind == 2 and y.max() > 1:
                    y = y * 2
                x = x - 1
            elif kind == 3:
                x, y = y, x
        return x, y

    module = Two(random)
    made = export(module, drawn(2, 0))
    for seed in range(3):
        for found, expected in zip(
            ran(made, drawn(2, seed)), module(Tensor(drawn(2, seed))), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def raises(m: Two, x: Tensor) -> Any:
    if (x < 0).any():
        raise ValueError("expected no negative numbers")
    return x


def kinds(m: Two, x: Tensor) -> Any:
    return x if x.sum() > 0 else x > 0


def endless(m: Two, x: Tensor) -> Any:
    while True:
        if x.sum() > 0:
            return x
        x = x - 1


def too_many(m: Two, x: Tensor) -> Any:
    for i in range(20):
        x = x + 1 if x.max() > i else x
    return x


REFUSED = {
    raises: r"test_control_flow\.py:\d+: .*raises ValueError: expected no negative",
    kinds: r"test_control_flow\.py:\d+: .*differ in what they give",
    endless: r"test_control_flow\.py:\d+: .*again and again",
    too_many: r"test_control_flow\.py:\d+: expected at most 32 control-flow paths",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_is_refused_says_where(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if function is too_many:
        monkeypatch.setattr("burnish.codegen.writers.traced.ways._MOST", 32)
    with pytest.raises(ExportError, match=REFUSED[function]):
        export(Two(function), drawn(2, 0))
