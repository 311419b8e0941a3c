"""Mixtures of experts: a router chooses the networks that each token goes through.

Every expert computes every token here, and what the router did not choose counts 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import onnx_ir as ir

from burnish.codegen.readers.microsoft.activations import swiglu
from burnish.codegen.readers.microsoft.shared.bodies import (
    Builder,
    Unreadable,
    array_of,
    microsoft,
    rank,
    size,
)
from burnish.codegen.readers.microsoft.shared.packed import packed, unpacked


@dataclass(frozen=True)
class _Activation:
    """The activation between the experts' matrices.

    fusion: where "swiglu" finds gates and values: 1 beside each other in turns, 2 in
    halves, 0 in the matrix fc3.
    """

    kind: str
    alpha: float
    beta: float
    fusion: int
    limit: float | None

    def __call__(self, op: Builder, x: Any, other: Any, like: Any) -> Any:
        """x: what fc1 gives. other: what fc3 gives, or None. like: of their type."""
        if self.kind == "swiglu":
            return self._gated(op, x, other, like)
        plain = {
            "gelu": lambda: op.Gelu(x, approximate="tanh"),
            "identity": lambda: x,
            "relu": lambda: op.Relu(x),
            "silu": lambda: op.Mul(x, op.Sigmoid(x)),
        }
        if self.kind not in plain:
            raise Unreadable(f"expected one of {sorted(plain)} or swiglu")
        y = plain[self.kind]()
        return y if other is None else op.Mul(y, other)

    def _gated(self, op: Builder, x: Any, value: Any, like: Any) -> Any:
        gate = x
        if self.fusion == 1:
            ends = op.Shape(x, start=2, end=3)
            gate, value = (op.Slice(x, [i], ends, [2], [2]) for i in (0, 1))
        elif self.fusion == 2:
            gate, value = op.make("", "Split", (x,), {"axis": 2, "num_outputs": 2}, 2)
        elif value is None:
            raise Unreadable("expected gates and values, in fc1 or in fc3")
        if self.limit is not None and np.isfinite(self.limit):
            low, high = (op.number(end, like) for end in (-self.limit, self.limit))
            gate = op.Min(gate, high)
            value = op.Clip(value, low, high)
        inner = gate if self.alpha == 1 else op.Mul(gate, op.number(self.alpha, like))
        value = value if self.beta == 0 else op.Add(value, op.number(self.beta, like))
        return op.Mul(op.Mul(gate, op.Sigmoid(inner)), value)


class Mixture(TypedDict, total=False):
    """The attributes of a mixture of experts, as `_mixed` takes them."""

    activation_alpha: float
    activation_beta: float
    activation_type: str
    k: int
    normalize_routing_weights: int
    swiglu_fusion: int
    swiglu_limit: float
    swiglu_limit_after_activation: int
    use_sparse_mixer: int


@microsoft("MoE")
def moe(
    op: Builder,
    input_: Any,
    router_probs: Any,
    fc1_experts_weights: Any,
    fc1_experts_bias: Any,
    fc2_experts_weights: Any,
    fc2_experts_bias: Any = None,
    fc3_experts_weights: Any = None,
    fc3_experts_bias: Any = None,
    **mixture: Unpack[Mixture],
) -> Any:
    """Weights are (experts, outputs, inputs), biases (experts, outputs)."""
    weights = fc1_experts_weights, fc2_experts_weights, fc3_experts_weights
    biases = fc1_experts_bias, fc2_experts_bias, fc3_experts_bias
    return _mixed(op, input_, (router_probs, None), weights, biases, **mixture)


@microsoft("QMoE")
def qmoe(
    op: Builder,
    input_: Any,
    router_probs: Any,
    fc1_experts_weights: Any,
    fc1_scales: Any,
    fc1_experts_bias: Any,
    fc2_experts_weights: Any,
    fc2_scales: Any,
    fc2_experts_bias: Any = None,
    fc3_experts_weights: Any = None,
    fc3_scales: Any = None,
    fc3_experts_bias: Any = None,
    fc1_zero_points: Any = None,
    fc2_zero_points: Any = None,
    fc3_zero_points: Any = None,
    router_weights: Any = None,
    *,
    accuracy_level: int = 0,
    block_size: int = 0,
    expert_weight_bits: int = 4,
    quant_type: str = "int",
    weights_prepacked: int = -1,
    **mixture: Unpack[Mixture],
) -> Any:
    """MoE with weights of 4 or 8 bits, a scale for each row or each block of one.

    What the chosen experts count sums to 1, unless router_weights says it.
    """
    bits = expert_weight_bits
    if bits not in (4, 8) or quant_type != "int" or weights_prepacked > 0:
        raise Unreadable(f"expected whole numbers of 4 or 8 bits, got {bits}")
    weights = tuple(
        w if w is None else _whole(op, w, scales, zeros, bits, block_size)
        for w, scales, zeros in (
            (fc1_experts_weights, fc1_scales, fc1_zero_points),
            (fc2_experts_weights, fc2_scales, fc2_zero_points),
            (fc3_experts_weights, fc3_scales, fc3_zero_points),
        )
    )
    if router_weights is None:
        mixture["normalize_routing_weights"] = 1
    biases = fc1_experts_bias, fc2_experts_bias, fc3_experts_bias
    chosen = router_probs, router_weights
    return _mixed(op, input_, chosen, weights, biases, **mixture)


def _whole(
    op: Builder, weight: Any, scales: Any, zeros: Any, bits: int, block: int
) -> Any:
    """A weight (experts, outputs, bytes) as the floats that its codes stand for."""
    codes = unpacked(array_of(weight, "weights"), bits)
    table = array_of(scales, "scales")
    table = table.reshape(*codes.shape[:2], -1)
    if zeros is None:
        points = np.full(table.shape, 1 << (bits - 1), np.uint8)
    else:
        held = unpacked(array_of(zeros, "zero points"), bits)
        points = held.reshape(*table.shape[:2], -1)[..., : table.shape[2]]
    stored = op.value(packed(codes, bits))
    stored.name = weight.name
    return op.DequantizeLinear(
        *(stored, table, packed(points, bits)),
        axis=2,
        block_size=block or codes.shape[2],
    )


def _shares(
    op: Builder, router: Any, weights: Any, count: int, *, normalized: bool
) -> Any:
    """The weight of each expert for each token, 0 but for `count`: (tokens, experts)

    weights: what they count, where it is not the softmax of router.
    """
    chances = op.Softmax(router, axis=-1) if weights is None else router
    best, places = op.make("", "TopK", (chances, [count]), {"axis": -1}, 2)
    if weights is not None:
        best = op.GatherElements(weights, places, axis=-1)
    if normalized:
        best = op.Div(best, op.ReduceSum(best, [-1]))
    nothing = op.Sub(chances, chances)
    return op.ScatterElements(nothing, places, best, axis=-1)


def _mixed(
    op: Builder,
    x: Any,
    router: tuple[Any, Any],
    weights: tuple[Any, ...],
    biases: tuple[Any, ...],
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0,
    swiglu_limit: float | None = None,
    swiglu_limit_after_activation: int = 0,
    use_sparse_mixer: int = 0,
) -> Any:
    """The sum of what the chosen experts give, in x's shape.

    router: its logits, and what the experts count where it is not their softmax.
    """
    if use_sparse_mixer or swiglu_limit_after_activation:
        raise Unreadable("expected a router that takes the softmax's greatest")
    shares = _shares(op, *router, k, normalized=bool(normalize_routing_weights))
    act = _Activation(
        *(activation_type, activation_alpha, activation_beta),
        *(swiglu_fusion, swiglu_limit),
    )
    flat = rank(x) == 2
    rows = op.Unsqueeze(x if flat else op.Flatten(x, axis=rank(x) - 1), [0])

    def product(a: Any, place: int) -> Any:
        y = op.MatMul(a, op.Transpose(weights[place], perm=[0, 2, 1]))
        bias = biases[place]
        return y if bias is None else op.Add(y, op.Unsqueeze(bias, [1]))

    other = None if weights[2] is None else product(rows, 2)
    every = product(act(op, product(rows, 0), other, x), 1)
    by_expert = op.Unsqueeze(op.Transpose(shares, perm=[1, 0]), [2])
    y = op.ReduceSum(op.Mul(every, by_expert), [0], keepdims=0)
    return y if flat else op.Reshape(y, op.Shape(x))


@microsoft("MoEGroupRouter")
def moe_group_router(
    op: Builder,
    logits: Any,
    expert_bias: Any,
    projection_weight: Any = None,
    *,
    group_topk: int = 2,
    n_group: int = 1,
    router_sentinel: float = -10000.0,
    top_k: int,
    topk_group: int = 1,
) -> Any:
    """Logarithms of the chosen experts' scores, the sentinel for others: (tokens, E)

    Groups are chosen by their best experts, experts among the chosen groups'.
    """
    experts = len(array_of(expert_bias, "the experts' bias"))
    if projection_weight is not None or any(op.outputs[1:]):
        raise Unreadable("expected scores of the chosen experts alone")
    scores = op.Sigmoid(op.Reshape(logits, [-1, experts]))
    ranked = op.Add(scores, expert_bias)
    if n_group > 1:
        ranked = _of_best_groups(op, ranked, experts, n_group, group_topk, topk_group)
    _, chosen = op.make("", "TopK", (ranked, [top_k]), {"axis": -1}, 2)
    floor, low = op.number(1e-20, logits), op.number(router_sentinel, logits)
    logs = op.Log(op.Max(op.GatherElements(scores, chosen, axis=1), floor))
    others = op.Expand(low, op.Shape(scores))
    return op.ScatterElements(others, chosen, logs, axis=1)


def _of_best_groups(
    op: Builder, ranked: Any, experts: int, groups: int, best: int, kept: int
) -> Any:
    """The ranks (tokens, E), those of other groups' experts as low as can be."""
    width = experts // groups
    by_group = op.Reshape(ranked, [-1, groups, width])
    several = (by_group, [min(best, width)])
    top, _ = op.make("", "TopK", several, {"axis": -1}, 2)
    sums = op.ReduceSum(top, [-1], keepdims=0)
    _, chosen = op.make("", "TopK", (sums, [kept]), {"axis": -1}, 2)
    numbers = op.value(np.arange(groups).reshape(1, groups, 1))
    is_kept = op.ReduceMax(
        op.Cast(op.Equal(op.Unsqueeze(chosen, [1]), numbers), to=ir.DataType.INT32),
        [-1],
        keepdims=1,
    )
    low = op.lowest(ranked)
    seen = op.Where(op.Cast(is_kept, to=ir.DataType.BOOL), by_group, low)
    return op.Reshape(seen, [-1, experts])


@microsoft("RouterGateUpProj")
def router_gate_up(
    op: Builder,
    X: Any,
    W: Any,
    *,
    router_size: int,
    activation: str = "swiglu",
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    limit: float = 0.0,
) -> Any:
    """Logits of a router (..., router_size), and a shared expert's SwiGLU, of X @ W."""
    width = size(W, 1)
    if width is None or activation != "swiglu":
        raise Unreadable(f"expected W of a known size and swiglu, got {activation}")
    inner = (width - router_size) // 2
    y = op.MatMul(X, W)
    logits, gate, up = op.split(y, -1, [router_size, inner, inner])
    shared = swiglu(
        *(op, gate, up),
        activation_alpha=activation_alpha,
        activation_beta=activation_beta,
        limit=limit,
    )
    return logits, shared
