"""Statements as `nn.MultiheadAttention`: equal results in draws of several sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from burnish import ops
from burnish.codegen.arrange.classes import builder
from burnish.codegen.arrange.classes.attention_trial import MaskForm
from burnish.codegen.arrange.classes.multihead import multihead
from burnish.codegen.program import Assign
from tests.codegen.arrange.test_structure import encoder, text_of
from tests.harness.program_text import parsed

TEXT = """
weight q "q": float32[4, 4]
weight k "k": float32[4, 4]
weight v "v": float32[4, 4]
weight o "out_proj.w": float32[4, 4]
input x: float32[batch, time, 4]
a: float32[batch, time, 4] = nn.Linear(4, 4, bias=False, weight=q)(x)
b: float32[batch, time, 4] = nn.Linear(4, 4, bias=False, weight=k)(x)
c: float32[batch, time, 4] = nn.Linear(4, 4, bias=False, weight=v)(x)
q1: float32[batch, time, 2, 2] = a.reshape((x.shape[0], -1, 2, 2))
k1: float32[batch, time, 2, 2] = b.reshape((x.shape[0], -1, 2, 2))
v1: float32[batch, time, 2, 2] = c.reshape((x.shape[0], -1, 2, 2))
q2: float32[batch, 2, time, 2] = q1.transpose(0, 2, 1, 3)
k2: float32[batch, 2, time, 2] = {keys}.transpose(0, 2, 1, 3)
v2: float32[batch, 2, time, 2] = {values}.transpose(0, 2, 1, 3)
y1: float32[batch, 2, time, 2] = ops.scaled_dot_product_attention(q2, k2, v2{options})
y2: float32[batch, time, 2, 2] = y1.transpose(0, 2, 1, 3)
y3: float32[batch, time, 4] = y2.flatten(2)
y: float32[batch, time, 4] = nn.Linear(4, 4, bias=False, weight=o)(y3)
return y
output "y": float32[batch, time, 4]
"""


WINDOW = "_slice(), _slice(stop={})"
SQUARE = "Tensor.ones(x.shape[1], x.shape[1], dtype='bool')"


def recognized(keys: str = "k1", values: str = "v1", options: str = "") -> Any:
    return recognized_in(TEXT.format(keys=keys, values=values, options=options))


def recognized_in(text: str) -> Any:
    program = parsed(text)
    statements = program.body.statements
    last = statements[-1]
    assert isinstance(last, Assign)
    return multihead(statements, program.inputs, list(last.targets))


def test_a_part_of_the_features_is_no_window() -> None:
    """However long it is."""
    wide = TEXT.replace("4]", "12]").replace("(4, 4", "(12, 12").replace("2, 2", "2, 6")
    wide = wide.replace("time, 2]", "time, 6]")
    joined = "ops.concat([a[..., _slice(start=9)], a[..., _slice(stop=9)]], axis=-1)"
    text = wide.format(keys="k1", values="v1", options="")
    made = f"z: float32[batch, time, 12] = {joined}"
    turned = (
        "ops.concat([z[..., _slice(start=3)], z[..., _slice(stop=3)]], axis=-1).reshape"
    )
    named = next(line for line in text.splitlines() if line.startswith("q1"))
    own = f"{made}\n{named.replace('a.reshape', turned)}"
    assert recognized_in(text.replace(named, own)) is not None


@pytest.mark.parametrize("options", ["", ", is_causal=True"])
def test_attention_of_one_tensor_is_the_layer(options: str) -> None:
    found = recognized(options=options)
    assert found is not None
    assert found.num_heads == 2
    assert found.is_causal == bool(options)


def test_a_causal_mask_is_the_layer_s() -> None:
    found = recognized(options=f", attn_mask=ops.tril({SQUARE})")
    assert found is not None
    assert found.is_causal


def test_an_operator_that_nothing_has_imported_yet_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(vars(ops), "scaled_dot_product_attention", raising=False)
    assert recognized() is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"options": ", scale=0.5"},
        # the same as the layer up to seven positions, the length of the first draw
        {"keys": f"k1[{WINDOW.format(7)}]", "values": f"v1[{WINDOW.format(7)}]"},
        {"keys": f"k1[{WINDOW.format(64)}]", "values": f"v1[{WINDOW.format(64)}]"},
        # the same up to as many positions as are written there, which may be a size
        {"options": f", attn_mask=ops.tril({SQUARE}, k=1)"},
        {"options": f", attn_mask=ops.tril({SQUARE}, k=63)"},
        # the same for inputs from the standard normal distribution
        {"keys": "k1.clip(-4.0, 4.0)"},
    ],
    ids=["scale", "window", "long window", "band", "wide band", "bounded keys"],
)
def test_what_agrees_at_small_sizes_only_is_not(changes: dict[str, str]) -> None:
    assert recognized(**changes) is None


HALVES = """s1: float16[batch, 2, time, 2] = (q2 * {0})
s2: float16[batch, 2, 2, time] = (k2.transpose(0, 1, 3, 2) * {0})
s: float16[batch, 2, time, time] = (s1 @ s2)
y1: float16[batch, 2, time, 2] = (ops.softmax(s) @ v2)"""


@pytest.mark.parametrize(("scale", "is_layer"), [(0.8415, True), (0.844, False)])
def test_a_scale_that_half_precision_rounds_is_the_layer_s(
    scale: float, is_layer: bool
) -> None:
    lines = TEXT.format(keys="k1", values="v1", options="").replace(
        "float32", "float16"
    )
    named = [line for line in lines.splitlines() if line.startswith("y1")]
    text = lines.replace(named[0], HALVES.format(scale))
    text = text.replace("bias=False", "bias=False, dtype='float16'")
    assert (recognized_in(text) is not None) == is_layer


SCORES = """m1: bool[batch, 1, 1, time] = m.reshape((m.shape[0], 1, 1, -1))
s: float32[batch, 2, time, time] = ((q2 * 0.5**0.5) @ k2.mT)
p: float32[batch, 2, time, time] = ops.softmax({})
y1: float32[batch, 2, time, 2] = ({} @ v2)"""
LEAST = "-3.4028235e38"


def recognized_masked(masked: str, weights: str = "p") -> Any:
    """masked: the scores where booleans, (batch, time), hide keys."""
    named = [line for line in TEXT.splitlines() if line.startswith("y1")]
    text = TEXT.replace(named[0], SCORES.format(masked, weights))
    text = text.format(keys="k1", values="v1")
    first = "input x: float32[batch, time, 4]\n"
    return recognized_in(text.replace(first, f"{first}input m: bool[batch, time]\n"))


@pytest.mark.parametrize(
    ("masked", "weights", "low"),
    [
        ("ops.where(m1, float('-inf'), s)", "p", None),
        ("s + ops.where(m1, float('-inf'), 0.0)", "p", None),
        ("ops.where(m1, float('-inf'), s)", "ops.where(p == p, p, 0.0)", None),
        (f"ops.where(m1, {LEAST}, s)", "p", float(LEAST)),
        (f"s + ops.where(m1, {LEAST}, 0.0)", "p", float(LEAST)),
        ("s + ops.where(m1, -1e4, 0.0)", "p", -1e4),
        ("s + m1.astype('float32') * -1e4", "p", -1e4),
    ],
)
def test_a_finite_mask_stays_one(masked: str, weights: str, low: float | None) -> None:
    """Rows that are masked wholly are averages, but NaN or zeros after -inf."""
    found = recognized_masked(masked, weights)
    assert found is not None
    assert found.mask == MaskForm(1, "key_padding_mask", low)


def test_scores_that_a_number_replaces_are_no_sum() -> None:
    """Rows that are masked wholly are plain averages, as of no sum with -1e4."""
    assert recognized_masked("ops.where(m1, -1e4, s)") is None


def test_rows_of_zeros_are_tried() -> None:
    """As Keras' masks of what is all zeros look for them."""
    empty = "(x.sum(-1) == 0).reshape((x.shape[0], -1, 1, 1))"
    assert recognized(values=f"ops.where({empty}, 1.0, v1)") is None
    assert recognized(values=f"ops.where({empty}, v1, v1)") is not None


def test_layers_alike_are_tried_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[object] = []

    def noted(*given: Any) -> Any:
        tried.append(given)
        return multihead(*given)

    monkeypatch.setattr(builder, "multihead", noted)
    assert "nn.MultiheadAttention(" in text_of(encoder(3), tmp_path)
    assert len(tried) == 1
