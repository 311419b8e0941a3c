"""Statements as `nn.MultiheadAttention`: equal results in draws of several sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from burnish import ops
from burnish.codegen.arrange.classes import builder
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


def recognized(keys: str = "k1", values: str = "v1", options: str = "") -> object:
    return recognized_in(TEXT.format(keys=keys, values=values, options=options))


def recognized_in(text: str) -> object:
    program = parsed(text)
    statements = program.body.statements
    last = statements[-1]
    assert isinstance(last, Assign)
    return multihead(statements, program.inputs, list(last.targets))


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
